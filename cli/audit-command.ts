import type { AuditAction } from '../shared/audit/audit-actions.ts';
import { printNotice } from './output/print-notice.ts';

/** A connection of either driver. */
interface Connection {
  query(text: string, values: unknown[]): Promise<unknown>;
}

/**
 * Tells the audit of an operator's command before its work, so that one that is killed is told of, too. Where no entry can
 * be added, as by a role that may only read, on a replica or on a full disk, the command goes on and says so.
 */
export async function auditCommand(
  connection: Connection,
  action: AuditAction,
  target: string,
): Promise<void> {
  try {
    const text = 'insert into audit_pending (action, target) values ($1, $2)';
    await connection.query(text, [action, target]);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    printNotice(`The audit has no entry of this command: ${why}.`);
  }
}
