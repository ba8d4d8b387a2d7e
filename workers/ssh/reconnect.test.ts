import { expect, test } from 'vitest';
import type { JobRow } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { createLog } from '../../shared/process/log.ts';
import type { SessionContext } from '../context.ts';
import { ReleaseJob } from '../engine/release-job.ts';
import { NoAnswer } from '../host-agent/no-answer.ts';
import { withSession } from './reconnect.ts';
import type { RemoteSession } from './remote-session.ts';

const AWAY_MS = 90_000;
const silent = new WindlassError('remote_connection_failed', { cause: new NoAnswer('silent') });

/** Works once over a connection that is so old, after the host was away for 90 s. */
function workOnce({ age, wasAsked }: { age: number; wasAsked: boolean }) {
  const session = { connectedAt: performance.now() - age } as RemoteSession;
  const job = {
    queue: 'remote',
    kind: 'copy',
    runAt: null,
    unreachableSince: new Date(Date.now() - AWAY_MS),
  };
  const context = {
    job,
    sid: 's',
    log: createLog({ level: 'silent', name: 'test' }),
    signal: new AbortController().signal,
    update: async (set: Partial<JobRow>) => void Object.assign(job, set),
    publish: async (set: Partial<JobRow>) => void Object.assign(job, set),
    worker: {
      sessions: {
        find: () => ({ livesWithConnection: wasAsked }),
        use: (_sid: string, _signal: AbortSignal, work: (on: RemoteSession) => unknown) =>
          work(session),
      },
    },
  } as unknown as SessionContext;
  return withSession(context, async () => {
    throw silent;
  });
}

test('the time until a user has logged in is not time that the host was silent', async () => {
  await expect(workOnce({ age: 10, wasAsked: true })).rejects.toThrow(ReleaseJob);
});

test.each([
  ['a host that stays silent after its login', { age: AWAY_MS + 10_000, wasAsked: true }],
  ['a host that was away, and whose login asks nobody', { age: 10, wasAsked: false }],
])('the time of %s counts', async (_host, given) => {
  await expect(workOnce(given)).rejects.toBe(silent);
});
