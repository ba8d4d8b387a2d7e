import { eq, sql } from 'drizzle-orm';
import { abortable } from '../../shared/abort.ts';
import { sessions } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';
import type { Handler, JobContext } from '../context.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';

/** Until start-up files have run and a line has come back. */
const PROBE_MS = 20_000;

/** Logs in for the first time, starts the agent where the session has one, and makes the session usable. */
const connect: Handler<'connect'> = async context => {
  const { worker, job, signal, cancel } = context;
  const sid = job.session ?? '';
  const hasAgent = await worker.sessions.hasAgent(sid);
  const shell = await worker.sessions.use(sid, AbortSignal.any([signal, cancel]), async remote => {
    if (hasAgent) return (await remote.agent()).hello.shell;
    await assertQuiet(remote, context);
    return null;
  });
  return {
    result: {},
    promote: async tx => {
      await tx
        .update(sessions)
        .set({ opened: sql`now()`, accessed: sql`now()`, shell })
        .where(eq(sessions.sid, sid));
    },
  };
};

export default connect;

/** Start-up files that print would be taken for a command's output; with an agent, its first line shows them. */
async function assertQuiet(remote: RemoteSession, { signal }: JobContext): Promise<void> {
  const channel = await remote.exec('/bin/true', signal);
  const tooLong = AbortSignal.timeout(PROBE_MS);
  channel.stdin.end();
  let printed = '';
  const read = async () => {
    for await (const bytes of channel.stdout)
      printed += String(bytes).slice(0, 200 - printed.length);
  };
  try {
    await abortable(read(), AbortSignal.any([signal, tooLong]));
  } catch (error) {
    if (!tooLong.aborted) throw error;
    throw new WindlassError('remote_connection_failed', {
      detail: `The account's shell did not run /bin/true within ${PROBE_MS / 1_000} s.`,
      hint: "Look for what the account's start-up files wait for.",
      cause: error,
    });
  } finally {
    channel.destroy();
  }
  if (printed === '') return;
  throw new WindlassError('startup_files_print', {
    detail: `Start-up files print: the account's shell wrote ${JSON.stringify(printed.slice(0, 80))} before any command ran.`,
    hint: "Have the account's start-up files print only where the shell is interactive.",
  });
}
