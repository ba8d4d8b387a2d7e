import { timingSafeEqual } from 'node:crypto';
import { parse } from 'node:querystring';
import { z } from 'zod';
import { hmac } from '../../shared/secrets/secrets.ts';
import { tryParseJson } from '../../shared/try-parse-json.ts';

/** By this prefix people, secret scanners and our own logs recognise a link. */
const PREFIX = 'wlk_';
const TEXT = /^wlk_([\w-]{1,8192})\.([\w-]{43})$/;

/** What a link says; its MAC vouches for it, for its path and for the parameters that it names. */
export interface LinkClaims {
  username: string;
  /** That of the user's row, which increments with each change, so that a new password ends the link. */
  version: number;
  /** When the user was made, in milliseconds: a later user of the same name inherits no link. */
  created: number;
  /** The API token that made it and that it ends with; null: it was made otherwise. */
  token: string | null;
  /** Whether the credential that made it was a server administrator's. */
  administrator: boolean;
  /** Seconds since 1970. */
  expires: number;
  /** Names of the parameters that a request must have just as they were given. */
  parameters: string[];
}

/** Claims as they are encoded: short, because they are part of an address. */
const encodedClaims = z.tuple([
  z.string(),
  z.number().int(),
  z.number().int(),
  z.string().nullable(),
  z.boolean(),
  z.number().int(),
  z.array(z.string()),
]);

/** A path as it stands in the request line, and its query without a question mark. */
export interface LinkedAddress {
  path: string;
  query: string;
}

/** The text of a link: a MAC makes it, so that nothing is stored. */
export function encodeLink(secretKey: string, claims: LinkClaims, address: LinkedAddress): string {
  const { username, version, created, token, administrator, expires, parameters } = claims;
  const encoded: z.output<typeof encodedClaims> = [
    username,
    version,
    created,
    token,
    administrator,
    expires,
    parameters,
  ];
  const payload = Buffer.from(JSON.stringify(encoded)).toString('base64url');
  return `${PREFIX}${payload}.${macOf(secretKey, payload, parameters, address)}`;
}

/** What a link says, if one of the keys made it for this address; whether it has ended is not looked at. */
export function decodeLink(
  secretKeys: string[],
  text: string,
  address: LinkedAddress,
): LinkClaims | undefined {
  const [, payload = '', mac = ''] = TEXT.exec(text) ?? [];
  const claims = readClaims(payload);
  if (!claims) return undefined;
  const isMade = secretKeys.some(key =>
    timingSafeEqual(Buffer.from(macOf(key, payload, claims.parameters, address)), Buffer.from(mac)),
  );
  return isMade ? claims : undefined;
}

function readClaims(payload: string): LinkClaims | undefined {
  const read = encodedClaims.safeParse(tryParseJson(Buffer.from(payload, 'base64url').toString()));
  if (!read.success) return undefined;
  const [username, version, created, token, administrator, expires, parameters] = read.data;
  return { username, version, created, token, administrator, expires, parameters };
}

/** The first HMAC derives a key for links only, so that no other HMAC of the service is a link's. */
function macOf(
  secretKey: string,
  payload: string,
  parameters: string[],
  { path, query }: LinkedAddress,
): string {
  const given = parse(query);
  const values = parameters.map(name => [name, given[name] ?? null]);
  return hmac(hmac(secretKey, 'windlass link'), payload, path, JSON.stringify(values));
}

/** Hides links in what is logged of a text that clients choose. */
export const withoutLinks = (text: string): string =>
  text.replace(/wlk_[\w-]{20,8192}(\.[\w-]{0,64})?/g, `${PREFIX}[redacted]`);
