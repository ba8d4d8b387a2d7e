import { expect, test } from 'vitest';
import { JOB_KINDS, jobDefinition } from './catalog.ts';
import { UNDERSTOOD, versionsOf } from './payload-versions.ts';

test('a job in a session behind jump hosts is nothing for a worker that knows none, and one in no session is', () => {
  for (const kind of JOB_KINDS) {
    const { direct, behindJumps } = versionsOf(kind);
    expect([kind, behindJumps - direct]).toEqual([kind, jobDefinition(kind).session ? 1 : 0]);
    expect([kind, UNDERSTOOD[kind]]).toEqual([kind, behindJumps]);
  }
});
