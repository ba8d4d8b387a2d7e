import { and, eq, isNull, sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { hosts, sessions } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { abortable } from '../../shared/process/abort.ts';
import { limitTime } from '../../shared/process/limit-time.ts';
import { assertHostFor } from '../../shared/ssh/host-access.ts';
import { LoginNode } from '../batch/login-node.ts';
import type { JobContext, Outcome, SessionContext } from '../context.ts';
import { ShellTimeout, toPrintError, toUnusableError } from '../host-agent/protocol/hello.ts';
import { auditFirstLogin } from './audit-login.ts';
import { explainAccount } from './login-errors.ts';
import type { LoginStep } from './pooled-connection.ts';
import { hasAgent, withSession } from './reconnect.ts';
import type { RemoteSession } from './remote-session.ts';
import { ExecRefused } from './ssh-errors.ts';

/** For the start-up files to run and the command's end to come back. */
const PROBE_MS = 20_000;
/** Limit on what is read of each stream. */
const MAX_SAID = 65_536;

/**
 * Makes the session usable after a login: starts its agent, if it has one. Returns what the host asks its user, if
 * anything.
 */
export async function openSession(
  context: JobContext<'connect' | 'answer'>,
  step: LoginStep,
): Promise<Outcome<'connect' | 'answer'>> {
  const { worker, sid } = context;
  const which = eq(sessions.sid, sid);
  // The connection may have been lost before the commit that made this worker its holder.
  const after = () => worker.sessions.releaseIfLost(sid);
  if (step.challenge) {
    const { id: challenge, instruction, prompts, expires } = step.challenge;
    return {
      result: {
        challenge: { challenge, instruction, prompts, expires: expires.toISOString() },
      },
      promote: async tx => {
        const set = { challengeExpires: expires, holder: worker.id };
        await tx.update(sessions).set(set).where(which);
      },
      after,
    };
  }
  const startsAgent = await hasAgent(context);
  const firstUse = async (session: RemoteSession) => {
    const { banner } = session;
    const asking = introduceHost(session, context);
    const shell = startsAgent ? (await session.agent().catch(throwUnusable)).hello.shell : null;
    if (!startsAgent) await assertQuiet(session, context);
    return { shell, banner, host: await asking };
  };
  const { shell, banner, host } = await withSession(context, firstUse, {
    reconnect: false,
  }).catch((error: unknown) => {
    throw explainAccount(error);
  });
  const { wasAsked: interactive } = step;
  return {
    result: { ...(banner && { banner }), ...(host?.home && { home: host.home }) },
    promote: async tx => {
      await assertStillListed(context, tx);
      await auditFirstLogin(context, tx);
      await tx
        .update(sessions)
        .set({
          opened: sql`coalesce(${sessions.opened}, now())`,
          accessed: sql`now()`,
          shell,
          engines: host?.engines ?? null,
          interactive,
          holder: interactive ? worker.id : null,
          challengeExpires: null,
        })
        .where(which);
    },
    after,
  };
}

/**
 * Throws `host_not_allowed` if the user was removed from the host's list since the first login began. Of
 * open sessions the change has ended those. The entry is locked before the session, as everywhere.
 */
async function assertStillListed({ job, sid }: SessionContext, tx: Tx): Promise<void> {
  const [first] = await tx
    .select({ host: hosts })
    .from(sessions)
    .innerJoin(hosts, eq(hosts.name, sessions.hostname))
    .where(and(eq(sessions.sid, sid), isNull(sessions.opened)))
    .for('share', { of: hosts });
  if (first) assertHostFor(first.host, { username: job.owner });
}

/** The host's batch systems and the account's home; null if unknown now: a batch job asks again. */
const introduceHost = (session: RemoteSession, { signal }: Pick<JobContext, 'signal'>) =>
  limitTime(signal, PROBE_MS, limited => new LoginNode(session, limited).introduce()).catch(
    () => null,
  );

/** At the first login the shell has never proved to run commands; later a slow host is tried again. */
function throwUnusable(error: unknown): never {
  const cause = error instanceof WindlassError ? error.cause : undefined;
  throw cause instanceof ShellTimeout || cause instanceof ExecRefused ? cause.unusable : error;
}

const MARK = 'windlass-ready';

/**
 * Throws `startup_files_print` if start-up files print, which would mix with output of commands, and `shell_unusable`
 * if the account runs no command. An agent's first line shows both.
 */
async function assertQuiet(session: RemoteSession, { signal }: JobContext): Promise<void> {
  // Every shell knows it.
  const channel = await session.exec(`echo ${MARK}`, signal).catch(throwUnusable);
  const tooLong = AbortSignal.timeout(PROBE_MS);
  channel.stdin.end();
  const said = { stdout: '', stderr: '' };
  const read = async (stream: 'stdout' | 'stderr') => {
    for await (const bytes of channel[stream])
      if (said[stream].length < MAX_SAID) said[stream] += String(bytes);
  };
  try {
    const whole = Promise.all([read('stdout'), read('stderr')]);
    await abortable(whole, AbortSignal.any([signal, tooLong]));
  } catch (error) {
    if (!tooLong.aborted) throw error;
    throw new ShellTimeout(PROBE_MS, `${said.stdout}${said.stderr}`).unusable;
  } finally {
    channel.destroy();
  }
  const at = said.stdout.indexOf(MARK);
  if (at < 0) throw toUnusableError('ran no command', `${said.stdout}${said.stderr}`);
  if (said.stdout.trim() !== MARK) throw toPrintError(said.stdout.replace(MARK, '').trim());
}
