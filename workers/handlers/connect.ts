import { eq, sql } from 'drizzle-orm';
import { abortable } from '../../shared/abort.ts';
import { sessions } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';
import type { Handler, JobContext } from '../context.ts';
import { hasAgent, withSession } from '../ssh/reconnect.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';

/** For the start-up files to run and the command's end to come back. */
const PROBE_MS = 20_000;

/** Logs in for the first time, starts the agent where the session has one, and makes the session usable. */
const connect: Handler<'connect'> = async context => {
  const startsAgent = await hasAgent(context);
  const firstUse = async (session: RemoteSession) => {
    if (startsAgent) return (await session.agent()).hello.shell;
    await assertQuiet(session, context);
    return null;
  };
  const shell = await withSession(context, firstUse, { reconnect: false });
  return {
    result: {},
    promote: async tx => {
      await tx
        .update(sessions)
        .set({ opened: sql`now()`, accessed: sql`now()`, shell })
        .where(eq(sessions.sid, context.job.session ?? ''));
    },
  };
};

export default connect;

/** Throws where start-up files print: that would be mixed into a command's output. An agent's first line shows it, too. */
async function assertQuiet(session: RemoteSession, { signal }: JobContext): Promise<void> {
  const channel = await session.exec('/bin/true', signal);
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
