import { expect, test } from 'vitest';
import { WindlassError } from '../../shared/errors/errors.ts';
import { makeJobContext } from '../../test/harness/job-context.ts';
import { ReleaseJob } from '../engine/release-job.ts';
import { NoAnswer } from '../host-agent/protocol/no-answer.ts';
import type { PooledConnection } from './pooled-connection.ts';
import { withSession } from './reconnect.ts';
import type { RemoteSession } from './remote-session.ts';

const UNREACHABLE_MS = 90_000;
const silent = new WindlassError('remote_connection_failed', { cause: new NoAnswer('silent') });

/** Works once over a connection that is so old, after the host was unreachable for 90 s. */
function workOnce({ age, wasAsked }: { age: number; wasAsked: boolean }) {
  const session = { connectedAt: performance.now() - age } as RemoteSession;
  const job = {
    queue: 'remote',
    kind: 'copy',
    unreachableSince: new Date(Date.now() - UNREACHABLE_MS),
  };
  const context = makeJobContext<'copy'>({
    job,
    worker: {
      sessions: {
        find: () => ({ livesWithConnection: wasAsked }) as PooledConnection,
        use: (_sid, _signal, work) => work(session),
      },
    },
  });
  return withSession(context, async () => {
    throw silent;
  });
}

test('the time until a user has logged in is not time that the host was silent', async () => {
  await expect(workOnce({ age: 10, wasAsked: true })).rejects.toThrow(ReleaseJob);
});

test.each([
  ['a host that stays silent after its login', { age: UNREACHABLE_MS + 10_000, wasAsked: true }],
  ['a host that was unreachable, and whose login asks nobody', { age: 10, wasAsked: false }],
])('the time of %s counts', async (_host, given) => {
  await expect(workOnce(given)).rejects.toBe(silent);
});
