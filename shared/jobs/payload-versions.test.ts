import { expect, test } from 'vitest';
import { JOB_KINDS, jobDefinition } from './catalog.ts';
import { UNDERSTOOD, versionsOf } from './payload-versions.ts';

test('a job in a session that the previous release would use wrongly is nothing for it, and one in no session is', () => {
  for (const kind of JOB_KINDS) {
    const { usual, newer } = versionsOf(kind);
    expect([kind, newer - usual]).toEqual([kind, jobDefinition(kind).session ? 1 : 0]);
    expect([kind, UNDERSTOOD[kind]]).toEqual([kind, newer]);
  }
});
