import { z } from 'zod';
import { JOB_KINDS, JOBS, type JobKind } from './catalog.ts';
import { OBJECT_MEMBERS } from './result-objects.ts';

const shapeOf = (kind: JobKind): Record<string, z.ZodType> => JOBS[kind].result.shape;

/** The results of all kinds, without the keys of objects, which are internal. */
function publicMembers(): Record<string, z.ZodType> {
  const members: Record<string, z.ZodType> = {};
  for (const [name, schema] of JOB_KINDS.flatMap(kind => Object.entries(shapeOf(kind)))) {
    const kinds = JOB_KINDS.filter(kind => name in shapeOf(kind));
    if (!OBJECT_MEMBERS.has(name))
      members[name] = schema.optional().describe(`Of ${kinds.join(', ')}.`);
  }
  return members;
}

/**
 * What came of a job. The members of all kinds stand beside one another, so that a client reads one without looking at
 * the kind first. A worker of a newer release may have stored others.
 */
export const jobResult = z.looseObject(publicMembers()).meta({ id: 'JobResult' });
