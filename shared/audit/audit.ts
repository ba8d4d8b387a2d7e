import { createHash } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { Tx } from '../database/connect.ts';
import { auditPending } from '../database/schema.ts';
import { writeTexts } from '../database/text-arrays.ts';
import type { AuditAction, AuditOutcome } from './audit-actions.ts';

/** Who did it, and from where. */
interface AuditActor {
  user: string | null;
  address: string | null;
  requestId: string | null;
}

/** What was done: to one target, or to each of several. */
export type AuditTarget = string | null | readonly string[];

export interface AuditEvent extends AuditActor {
  action: AuditAction;
  target: AuditTarget;
  outcome?: AuditOutcome;
}

/** Writes an entry in the transaction of what it tells: one for each target, all in one statement. */
export async function recordAudit(
  tx: Tx,
  { user, address, requestId, action, target, outcome = 'ok' }: AuditEvent,
): Promise<void> {
  // One parameter, however many they are.
  const targets = target === null ? '{NULL}' : writeTexts([target].flat());
  await tx.execute(sql`
    insert into ${auditPending} (username, address, request_id, action, outcome, target)
      select ${user}, ${address}, ${requestId}, ${action}, ${outcome}, target
      from unnest(${targets}::text[]) target`);
}

/** In the place of a target that may hold secrets, such as the text of a command. */
export const targetDigest = (text: string) => createHash('sha256').update(text).digest('hex');

/** A chained entry without its hash, in the order of its JSON. */
export interface AuditEntry {
  seq: number;
  time: Date;
  user: string | null;
  address: string | null;
  action: string;
  target: string | null;
  outcome: string;
  requestId: string | null;
}

interface AuditRow extends Omit<AuditEntry, 'user'> {
  username: string | null;
}

export const toAuditEntry = (row: AuditRow): AuditEntry => ({
  seq: row.seq,
  time: row.time,
  user: row.username,
  address: row.address,
  action: row.action,
  target: row.target,
  outcome: row.outcome,
  requestId: row.requestId,
});

/** The hash of an entry, in hexadecimal, given that of the entry before it. */
export function auditHash(previous: string, entry: AuditEntry): string {
  return createHash('sha256')
    .update(`${previous}\n${JSON.stringify(entry)}`)
    .digest('hex');
}
