import { z } from 'zod';
import type { Credential } from '../../shared/secrets.ts';
import { isValidAt, parseCertificate } from '../../shared/ssh-certificates.ts';
import { parseInput } from '../http/validate.ts';
import { publicKeyOf } from './private-key.ts';
import type { ThreadedKeyParser } from './threaded-key-parser.ts';

/** How a user logs in to a host: by a password or a key, or by nothing but what the host asks for. */
export const credentialFields = {
  password: z.string().max(4_096).optional(),
  privateKey: z.string().max(65_536).optional(),
  /** The line of an OpenSSH certificate of the private key. */
  certificate: z.string().max(65_536).optional(),
  passphrase: z.string().max(4_096).optional(),
};

/** What belongs together of these fields. */
export function checkCredential(given: GivenCredential, context: z.RefinementCtx): void {
  const refuse = (field: string, message: string) =>
    context.addIssue({ code: 'custom', path: [field], message });
  if (given.password !== undefined && given.privateKey !== undefined)
    refuse('password', 'give either password or privateKey');
  if (given.privateKey !== undefined) return;
  if (given.passphrase !== undefined) refuse('passphrase', 'belongs to a privateKey');
  if (given.certificate !== undefined) refuse('certificate', 'belongs to a privateKey');
}

interface GivenCredential {
  password?: string;
  privateKey?: string;
  certificate?: string;
  passphrase?: string;
}

/** The credential of a request as it is sealed. Throws `invalid_input` for a key or a certificate that no host would take. */
export async function readCredential(
  keys: ThreadedKeyParser,
  { owner, given }: { owner: string; given: GivenCredential },
): Promise<Credential> {
  const { password, privateKey, passphrase, certificate } = given;
  if (privateKey === undefined) return { password };
  const parsed = await keys.parse(owner, privateKey, passphrase);
  if ('problem' in parsed) return refuse('privateKey', parsed.problem);
  if (certificate === undefined) return { privateKey: parsed.key };
  const problem = findProblem(certificate, parsed.key);
  if (problem !== undefined) return refuse('certificate', problem);
  return { privateKey: parsed.key, certificate: certificate.trim() };
}

function findProblem(line: string, privateKey: string): string | undefined {
  const certificate = parseCertificate(line);
  if (!certificate)
    return 'must be an OpenSSH certificate such as "ssh-ed25519-cert-v01@openssh.com AAAA…"';
  if (certificate.kind !== 'user') return "must be a user's certificate, not a host's";
  if (!certificate.publicKey.equals(publicKeyOf(privateKey)))
    return 'is of another key than privateKey';
  if (!isValidAt(certificate, new Date())) return `is valid ${describeValidity(certificate)}`;
  return undefined;
}

function describeValidity({
  validAfter,
  validBefore,
}: {
  validAfter: bigint;
  validBefore: bigint;
}) {
  const [from, to] = [validAfter, validBefore].map(seconds => {
    const time = new Date(Number(seconds) * 1_000);
    return Number.isNaN(time.getTime()) ? 'for ever' : time.toISOString();
  });
  return `from ${from} to ${to} alone`;
}

/** Throws `invalid_input` for one field. */
const refuse = (field: string, problem: string) =>
  parseInput({}, z.object({ [field]: z.never(problem) })) as never;
