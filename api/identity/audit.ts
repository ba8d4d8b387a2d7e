import { type AuditTarget, recordAudit } from '../../shared/audit/audit.ts';
import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import type { Tx } from '../../shared/database/connect.ts';
import type { Exchange } from '../http/exchange.ts';
import { clientAddress } from './client-address.ts';
import { currentUser } from './current-user.ts';

export type WriteAudit = (tx: Tx, action: AuditAction, target?: AuditTarget) => Promise<void>;

/**
 * What writes entries about a request, in the transaction of what they tell. Throws `too_many_requests` where the user causes
 * too many of those that cost nothing.
 */
export function auditOf({ req, res }: Exchange): WriteAudit {
  return async (tx, action, target) => {
    const user = currentUser(res);
    res.locals.auditRates.count(user, action);
    await auditAs({ req, res }, user.username)(tx, action, target);
  };
}

/** Does what auditOf() does without that limit, and for a request whose user is not known before it is answered. */
export function auditAs({ req, res }: Exchange, user: string): WriteAudit {
  return (tx, action, target = null) =>
    recordAudit(tx, {
      user,
      address: clientAddress(req),
      requestId: res.locals.requestId,
      action,
      target,
    });
}
