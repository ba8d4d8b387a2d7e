import { and, eq, isNull, sql } from 'drizzle-orm';
import { sessionTarget } from '../../shared/audit/session-target.ts';
import type { Tx } from '../../shared/database/connect.ts';
import { logins, sessions, tokens, webhooks } from '../../shared/database/schema.ts';
import { publishCancelled } from '../../shared/jobs/cancel.ts';
import type { ApiContext } from '../context.ts';
import { endSessions } from '../remote/sessions.ts';
import type { WriteAudit } from './audit.ts';
import { revoke } from './revocations.ts';

/** Whom to notify once the transaction has committed. */
export interface EndedAccess {
  jobs: string[];
  sessions: string[];
}
export const NOTHING_ENDED: EndedAccess = { jobs: [], sessions: [] };

/**
 * Ends all that lets a user in but the password, the remote sessions and the webhooks. The user's row must be locked:
 * whatever is created for a user locks it too.
 */
export async function endAccess(tx: Tx, username: string, audit: WriteAudit): Promise<EndedAccess> {
  await revoke(tx, username);
  // Before the jobs of sessions are cancelled, whose ends would be sent.
  await removeWebhooks(tx, username, audit);
  await tx.delete(logins).where(eq(logins.username, username));
  const endedTokens = await tx
    .delete(tokens)
    .where(eq(tokens.username, username))
    .returning({ id: tokens.id, isOver: sql<boolean>`coalesce(${tokens.expires} < now(), false)` });
  for (const { id, isOver } of endedTokens) if (!isOver) await audit(tx, 'token.delete', id);
  const ended = await endSessions(tx, and(eq(sessions.owner, username), isNull(sessions.ended)));
  for (const session of ended.opened) await audit(tx, 'session.close', sessionTarget(session));
  return ended;
}

async function removeWebhooks(tx: Tx, username: string, audit: WriteAudit): Promise<void> {
  const removed = await tx
    .delete(webhooks)
    .where(eq(webhooks.owner, username))
    .returning({ id: webhooks.id });
  for (const { id } of removed) await audit(tx, 'webhook.delete', id);
}

/** Notifies workers, and forgets cached identities. */
export function publishEndedAccess(
  api: Pick<ApiContext, 'notifications' | 'revocations'>,
  ended: EndedAccess,
): void {
  api.revocations.forget();
  publishCancelled(api, ended.jobs);
  for (const sid of ended.sessions) api.notifications.publish('session', sid);
}
