import { expect, test } from 'vitest';
import { z } from 'zod';
import { JOB_KINDS, JOBS } from './catalog.ts';
import { jobResult } from './job-result.ts';

test('a member means the same in the results of all kinds that have it', () => {
  for (const kind of JOB_KINDS)
    for (const [name, schema] of Object.entries<z.ZodType>(JOBS[kind].result.shape)) {
      const told = jobResult.shape[name];
      if (told === undefined) {
        expect(['object', 'poster', 'sprite']).toContain(name);
        continue;
      }
      const { description, ...shown } = z.toJSONSchema(told);
      expect(shown).toEqual(z.toJSONSchema(schema));
      expect(description).toMatch(new RegExp(`\\b${kind}\\b`));
    }
});
