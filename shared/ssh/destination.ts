import { createHash } from 'node:crypto';
import { WindlassError } from '../errors/errors.ts';

/** One machine on the way to a host, the host itself included, as its entry has it. */
interface Hop {
  address: string;
  port: number;
  /** The pinned keys, in any order. */
  keys: string[];
}

/** A digest of where a credential may be sent: address, port and pinned keys of every hop, the host last. */
export function destinationDigest(hops: Hop[]): string {
  const parts = hops.map(({ address, port, keys }) => [
    address,
    port,
    [...new Set(keys)].toSorted(),
  ]);
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}

/** What `end_reason` of a session is when the entry of its host was changed; a trigger of `hosts` sets it, too. */
export const HOST_CHANGED = 'host_changed';

export function hostChanged(hostname: string): WindlassError {
  return new WindlassError('host_changed', {
    detail: `the entry of ${hostname} or of a jump host on the way to it got another address, port, key or jump host, which ended the sessions opened before. Nothing was sent to the new destination; what ran on the host may run on.`,
    hint: 'Open a new session with POST /api/remotes, if the change is right.',
  });
}
