import { z } from 'zod';
import { hostText } from '../../shared/jobs/payloads/host-text.ts';
import type { Credential } from '../../shared/secrets/secrets.ts';
import { isValidAt, parseCertificate } from '../../shared/ssh/certificates.ts';
import { type Hops, hostOf } from '../../shared/ssh/hops.ts';
import { invalidInput } from '../http/validate.ts';
import { publicKeyOf } from './private-key.ts';
import type { ThreadedKeyParser } from './threaded-key-parser.ts';

export const loginName = z
  .string()
  .min(1)
  .max(256)
  .refine(name => !/[\0\r\n\p{Surrogate}]/u.test(name), 'must be one line of Unicode');

/** How a user logs in to a host: by a password or a key, or by nothing but what the host asks for. */
const credentialFields = {
  password: hostText({ max: 4_096 }).optional(),
  privateKey: z.string().max(65_536).optional(),
  /** The line of an OpenSSH certificate of the private key. */
  certificate: z.string().max(65_536).optional(),
  passphrase: hostText({ max: 4_096 }).optional(),
};

/** A credential for the jump host of a host, and so on for the one before it. */
const jumpCredential = z
  .strictObject({
    username: loginName,
    ...credentialFields,
    get jump(): z.ZodOptional<z.ZodType<GivenJump>> {
      return jumpCredential.optional();
    },
  })
  .superRefine(checkCredential)
  .meta({ id: 'JumpCredential' });

/** Credentials for a host, and for its jump hosts where they are not the same. */
export const loginFields = { ...credentialFields, jump: jumpCredential.optional() };

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
  jump?: GivenJump;
}
type GivenJump = GivenCredential & { username: string };

/** Throws `invalid_input` where there are more credentials than hosts on the way. */
export function checkJumps(given: GivenCredential, hops: Hops): void {
  const path: string[] = [];
  for (let { jump } = given; jump; { jump } = jump) {
    path.push('jump');
    const host = hops.at(-path.length);
    if (host?.jump == null)
      refuse(path.join('.'), `${(host ?? hostOf(hops)).name} has no jump host`);
  }
}

/**
 * The credentials of a request as they are sealed. Throws `invalid_input` for a key or a certificate that no host would take;
 * `at` is where in the request they are.
 */
export async function readCredential(
  keys: ThreadedKeyParser,
  { owner, given, at = '' }: { owner: string; given: GivenCredential; at?: string },
): Promise<Credential> {
  const { jump } = given;
  const credential = await readOne(keys, { owner, given, at });
  if (!jump) return credential;
  const before = await readCredential(keys, { owner, given: jump, at: `${at}jump.` });
  return { ...credential, jump: { username: jump.username, ...before } };
}

async function readOne(
  keys: ThreadedKeyParser,
  { owner, given, at }: { owner: string; given: GivenCredential; at: string },
): Promise<Credential> {
  const { password, privateKey, passphrase, certificate } = given;
  if (privateKey === undefined) return { password };
  const parsed = await keys.parse(owner, privateKey, passphrase);
  if ('problem' in parsed) return refuse(`${at}privateKey`, parsed.problem);
  if (certificate === undefined) return { privateKey: parsed.key };
  const problem = findProblem(certificate, parsed.key);
  if (problem !== undefined) return refuse(`${at}certificate`, problem);
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
const refuse = (field: string, problem: string): never => {
  throw invalidInput([{ field, problem }], 'Correct the named fields.');
};
