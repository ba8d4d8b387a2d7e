import { newId } from '../ids.ts';
import { JOB_KINDS, type JOBS, type JobKind, jobDefinition } from './catalog.ts';

/** Output of jobs of any kind that was rolled up. */
const OUTPUT = 'output';
type Entry = (typeof JOBS)[JobKind];
type ObjectPrefix = typeof OUTPUT | Extract<Entry, { objects: string }>['objects'];

/** What the keys of all objects begin with: garbage collection lists these. */
export const OBJECT_PREFIXES = [
  OUTPUT,
  ...new Set(JOB_KINDS.flatMap(kind => jobDefinition(kind).objects ?? [])),
].map(prefix => `${prefix}/`);

/**
 * A new key, `prefix/id/…`. Before a row refers to the object, garbage collection spares it while a job is open that
 * has this id or works for the model, upload or view with it.
 */
export const newObjectKey = (prefix: ObjectPrefix, id: string) => `${prefix}/${id}/${newId()}`;
