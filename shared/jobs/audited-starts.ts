import { type AuditEvent, targetDigest } from '../audit/audit.ts';
import type { AuditAction } from '../audit/audit-actions.ts';
import type { JobKind, Payload } from './catalog.ts';

/** Commands may hold secrets, and names of files on hosts are private: the audit has a digest of the text. */
const AUDITED: {
  [K in JobKind]?: { action: AuditAction; text: (payload: Payload<K>) => string };
} = {
  command: { action: 'command', text: ({ command }) => command },
  batch: { action: 'command', text: ({ command, script = '' }) => command ?? script },
  'write-file': { action: 'file.write', text: ({ path }) => path },
  'remove-file': { action: 'file.remove', text: ({ path }) => path },
};

interface Start<K extends JobKind> {
  kind: K;
  payload: Payload<K>;
  owner: string;
  address?: string;
  requestId?: string;
}

/** What the start of a job tells the audit, if anything. A retry tells it again. */
export function auditOf<K extends JobKind>(start: Start<K>): AuditEvent | undefined {
  const { kind, owner, address = null, requestId = null, payload } = start;
  const audited = AUDITED[kind];
  if (!audited) return undefined;
  const { action, text } = audited;
  return { user: owner, address, requestId, action, target: targetDigest(text(payload)) };
}
