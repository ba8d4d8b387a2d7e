import { isIP } from 'node:net';
import { z } from 'zod';
import { canRequireAuth, splitHosts, targetOf } from '../database/host-urls.ts';
import { findTlsProblem } from '../database/tls-parameters.ts';
import { parseAlgorithms } from '../ssh/algorithms.ts';

/** Kinds of values in the environment. */

/** Every refusal tells the whole range. */
export const whole = (min: number, max = Number.MAX_SAFE_INTEGER) => {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  const problem = `must be a whole number ${range}`;
  const tooLarge = max === Number.MAX_SAFE_INTEGER ? `must be at most ${max}` : problem;
  return z
    .string()
    .regex(/^\d+$/, problem)
    .transform(Number)
    .pipe(z.number().min(min, problem).max(max, tooLarge));
};
const SHARE_PROBLEM = 'must be a number above 0 and at most 1, such as 0.5';
/** A part of a whole, such as 0.5. */
export const share = z
  .string()
  .regex(/^(0?\.\d+|[01](\.0*)?)$/, SHARE_PROBLEM)
  .transform(Number)
  .pipe(z.number().gt(0, SHARE_PROBLEM).max(1, SHARE_PROBLEM));

/** What a server listens on. URLs take no zone, as of a link-local address. */
export const host = z.string().superRefine((value, context) => {
  if (isIP(value) !== 0 && value.includes('%'))
    context.addIssue('must be an address without a zone (%): :: listens on all of them');
  else if (isIP(value) === 0 && !(/^\w[\w.-]*$/.test(value) && URL.canParse(`http://${value}`)))
    context.addIssue('must be an IP address or the name of a host');
});

const url = (...schemes: string[]) =>
  z.string().refine(
    value => {
      try {
        return schemes.includes(new URL(value).protocol.replace(':', ''));
      } catch {
        return false;
      }
    },
    `must be a URL that begins with ${schemes.map(scheme => `${scheme}://`).join(' or ')}`,
  );

/**
 * A server with a login. A password that is not percent-encoded changes the URL's host or makes none: refused here, no
 * part of a password is named in an error as a host.
 */
const serverUrl = (...schemes: string[]) =>
  z.string().transform((value, context) => {
    const begins = schemes.map(scheme => `${scheme}://`);
    if (!begins.some(begin => value.startsWith(begin)))
      context.addIssue(`must be a URL that begins with ${begins.join(' or ')}`);
    else if (!hasEncodedLogin(value))
      context.addIssue(
        'is no URL: a port is a number, and in the user name and the password % is written %25, / is %2F, # is %23 and ? is %3F',
      );
    return value;
  });

function hasEncodedLogin(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { username, password, pathname, search, hash } = new URL(text);
  try {
    decodeURIComponent(username + password);
  } catch {
    return false;
  }
  return hash === '' && !`${pathname}${search}`.includes('@');
}

/** Its path names one of the server's databases, by a number. */
export const redisUrl = serverUrl('redis', 'rediss').refine(
  value => !hasEncodedLogin(value) || /^\/?\d*$/.test(new URL(value).pathname),
  'must end with the number of a database, such as /0, or with the port',
);

const oneUrl = serverUrl('postgres', 'postgresql');
/** It may name several servers, separated by commas, as libpq has it. */
export const databaseUrl = z
  .string()
  .superRefine((value, context) => {
    const [wrong] = splitHosts(value).flatMap(each => oneUrl.safeParse(each).error?.issues ?? []);
    if (wrong) context.addIssue(wrong.message);
  })
  .refine(
    value => [null, 'read-write', 'primary'].includes(targetOf(value)),
    'target_session_attrs must be read-write or primary: Windlass writes',
  )
  .refine(canRequireAuth, 'require_auth must be scram-sha-256, and goes without sslmode')
  .superRefine((value, context) => {
    const problem = findTlsProblem(value);
    if (problem) context.addIssue(problem);
  });

/** Whether secrets may pass through it: plain http only within this machine. */
export function isSecureUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  const isLocal = ['127.0.0.1', 'localhost', '[::1]'].includes(hostname);
  return protocol === 'https:' || (protocol === 'http:' && isLocal);
}

export const issuerUrl = url('http', 'https').refine(value => {
  if (!URL.canParse(value)) return true;
  const { search, hash } = new URL(value);
  return isSecureUrl(value) && search === '' && hash === '';
}, 'must be https:// (http:// on this machine alone), without a query');

/** Origins as browsers write them in `Origin` (WHATWG HTML, 7.1.1), separated by commas. */
export const origins = z
  .string()
  .transform(text => text.split(',').map(origin => origin.trim()))
  .pipe(
    z.array(
      z
        .string()
        .refine(
          isOrigin,
          'must be origins such as https://app.example, without a slash at their ends, separated by commas',
        ),
    ),
  );

function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, origin } = new URL(text);
  return ['http:', 'https:'].includes(protocol) && origin === text;
}

/** A server, without a path on it. */
export const endpoint = url('http', 'https').refine(value => {
  if (!URL.canParse(value)) return true;
  const { pathname, search, username } = new URL(value);
  return pathname === '/' && search === '' && username === '';
}, 'must be a scheme, a host and perhaps a port');

/** As clients reach the service: it may lie below a path. */
export const publicUrl = url('http', 'https').refine(
  value => !URL.canParse(value) || !/[?#@;,\s\\]|[^:]\/\//.test(value),
  'must be a scheme, a host and perhaps a port and a path',
);

/** The id of a key pair, and one of its keys. */
const SEAL_KEY = /^[0-9a-f]{8}\.[\w-]{40,}$/;
const SEAL_KEY_PROBLEM = 'must be what `windlass keys new` prints';
export const sealKey = z.string().regex(SEAL_KEY, SEAL_KEY_PROBLEM);
export const sealKeys = z
  .string()
  .refine(keys => keys.split(',').every(key => SEAL_KEY.test(key.trim())), SEAL_KEY_PROBLEM);

export const longSecret = z.string().min(32, 'must have at least 32 characters');

const MARKING = /^([\w.-]{1,100})=([^,]{1,500})$/;
/** As type=label, separated by commas. */
export const markings = z
  .string()
  .transform(list => list.split(',').map(entry => MARKING.exec(entry.trim())))
  .refine(found => found.every(match => match !== null), 'must be type=label, separated by commas')
  .transform(found =>
    found.flatMap(match => (match ? [{ type: match[1] ?? '', label: match[2] ?? '' }] : [])),
  );

/** Those of SSH, separated by commas. */
export const sshAlgorithms = z.string().transform((text, context) => {
  const found = parseAlgorithms(text);
  if (!('problem' in found)) return found;
  context.addIssue(found.problem);
  return z.NEVER;
});
