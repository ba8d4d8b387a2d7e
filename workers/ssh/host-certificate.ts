import { isValidAt, type SshCertificate } from '../../shared/ssh/certificates.ts';
import { fingerprint } from '../../shared/ssh/keys.ts';
import { fitsPattern } from '../../shared/ssh/name-patterns.ts';
import { readable } from './host-words.ts';
import { findSignatureProblem } from './verify-signature.ts';

interface Wanted {
  /** The host's, as its entry has it. */
  address: string;
  /** Keys of the pinned authorities, in wire format. */
  authorities: Buffer[];
  now?: Date;
}

const MAX_NAMED = 5;

/**
 * Why a host's certificate does not count, as the end of a sentence about it. Follows OpenSSH 10.5: a certificate
 * without names is for no host, names may have wildcards, and clocks get no tolerance.
 */
export function findCertificateProblem(
  certificate: SshCertificate,
  { address, authorities, now = new Date() }: Wanted,
): string | undefined {
  const { kind, authority, signed, signature, criticalOptions, principals } = certificate;
  if (!authorities.some(known => known.equals(authority)))
    return `is signed by ${fingerprint(authority)}, which is no pinned authority`;
  // After this its contents are the authority's word.
  const problem = findSignatureProblem({ key: authority, data: signed, signature });
  if (problem !== undefined) return problem;
  if (kind !== 'host') return "is a user's, not a host's";
  if (criticalOptions.length > 0)
    return `has critical options that a host's has not: ${list(criticalOptions)}`;
  const name = address.toLowerCase();
  if (principals.length === 0) return 'names no host that it is for';
  if (!principals.some(principal => fitsPattern(name, principal)))
    return `is for ${list(principals)}, not for ${name}`;
  if (isValidAt(certificate, now)) return undefined;
  const { validAfter, validBefore } = certificate;
  return validAfter > BigInt(Math.floor(now.getTime() / 1_000))
    ? `is valid from ${describe(validAfter)} on; here it is ${now.toISOString()}`
    : `was valid until ${describe(validBefore)}`;
}

const toDate = (seconds: bigint) => new Date(Number(seconds) * 1_000);

function describe(seconds: bigint): string {
  const time = toDate(seconds);
  return Number.isNaN(time.getTime()) ? 'a time after all others' : time.toISOString();
}

function list(names: string[]): string {
  const named = names.slice(0, MAX_NAMED).map(name => readable(name).slice(0, 253));
  return [...named, ...(names.length > MAX_NAMED ? ['…'] : [])].join(', ');
}
