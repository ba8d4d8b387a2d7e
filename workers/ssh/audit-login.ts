import { eq } from 'drizzle-orm';
import { type AuditEvent, recordAudit } from '../../shared/audit/audit.ts';
import { NAMED_SESSION, sessionTarget } from '../../shared/audit/session-target.ts';
import type { Tx } from '../../shared/database/connect.ts';
import { sessions } from '../../shared/database/schema.ts';
import { type ErrorCode, WindlassError } from '../../shared/errors/errors.ts';
import type { JobContext } from '../context.ts';

type LoginContext = JobContext<'connect' | 'answer'>;

/** Errors of a login that the host, and not the way to it, refused. */
const REFUSALS: ErrorCode[] = ['remote_authentication_failed', 'account_unusable'];

/** In the transaction that opens the session; a later login, after a lost connection, opens nothing. */
export async function auditFirstLogin(context: LoginContext, tx: Tx): Promise<void> {
  const [row] = await tx
    .select({ opened: sessions.opened })
    .from(sessions)
    .where(eq(sessions.sid, context.sid));
  if (row?.opened === null) await recordAudit(tx, await eventOf(context, tx));
}

/** Calls `login`; if the host refuses it, the entry is written with the job's end. */
export async function auditRefusal<T>(context: LoginContext, login: () => Promise<T>): Promise<T> {
  try {
    return await login();
  } catch (error) {
    const isRefused = error instanceof WindlassError && REFUSALS.includes(error.code);
    if (isRefused)
      context.withFailure(async tx =>
        recordAudit(tx, { ...(await eventOf(context, tx)), outcome: 'refused' }),
      );
    throw error;
  }
}

async function eventOf({ job, sid, payload }: LoginContext, tx: Tx): Promise<AuditEvent> {
  const { owner: user, requestId } = job;
  const [named] = await tx.select(NAMED_SESSION).from(sessions).where(eq(sessions.sid, sid));
  const target = named ? sessionTarget(named) : sid;
  return { user, address: payload.address ?? null, requestId, action: 'session.open', target };
}
