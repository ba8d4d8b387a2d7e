import { hostname } from 'node:os';
import { unwrap } from '../../../clients/typescript/src/api.ts';
import { WindlassError } from '../../../clients/typescript/src/error.ts';
import type { Windlass } from '../../../clients/typescript/src/windlass.ts';
import { CommandError } from '../../command-error.ts';
import { describe } from '../../output/describe-error.ts';
import { printNotice } from '../../output/print-notice.ts';
import { printDone, printRecord } from '../../output/print-records.ts';
import { readPassword, readSecretLine } from '../../secret-input.ts';
import { ask } from '../../terminal.ts';
import { checkToken, connectTo, normalizeUrl, type PasswordOptions } from '../connect.ts';
import { type Profile, readProfile, removeProfile, writeProfile } from '../profile.ts';
import { notTheService } from '../read-pages.ts';

export interface LoginOptions {
  user?: string;
  passwordStdin?: boolean;
  tokenStdin?: boolean;
  json?: boolean;
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** `windlass login`: keeps the address of a service and a token of its user. */
export async function logIn(given: string, options: LoginOptions): Promise<void> {
  const url = normalizeUrl(given);
  const { protocol, hostname: host } = new URL(url);
  if (protocol === 'http:' && !LOOPBACK.test(host))
    printNotice('http: whoever is on the way can read the password.');
  const { username, path } = await (options.tokenStdin
    ? keepToken(url)
    : keepNewToken(url, options));
  const sentence = `Logged in to ${url} as ${username}; the token is in ${path}.`;
  await printRecord({ url, username, path }, { sentence, json: options.json });
}

interface Kept {
  username: string;
  /** The path of the profile. */
  path: string;
}

async function keepToken(url: string): Promise<Kept> {
  const token = checkToken(await readSecretLine('the token'));
  const username = await readUsername(connectTo({ url, token }));
  return { username, path: await writeProfile(process.env, { url, username, token }) };
}

async function readUsername({ api }: Windlass): Promise<string> {
  const { username } = await unwrap(api.GET('/api/users/-'));
  if (typeof username !== 'string') throw notTheService();
  return username;
}

export interface LogoutOptions extends PasswordOptions {
  local?: boolean;
  json?: boolean;
}

/** `windlass logout`: ends the token that login made, which only the password can, and forgets it. */
export async function logOut({ local, ...options }: LogoutOptions): Promise<void> {
  const profile = await readProfile(process.env);
  if (!profile)
    throw new CommandError('You are not logged in.', { hint: 'Run: windlass login URL' });
  const { url, username, tokenId } = profile;
  // One that the user brought is the user's own.
  const revoked = !local && tokenId !== undefined;
  if (revoked) await endToken(profile, options);
  await removeProfile(process.env);
  if (!revoked) printNotice(`the token of ${url} may still hold. ${adviseOnToken(profile)}`);
  await printDone({ url, username, loggedOut: true, revoked }, options);
}

const adviseOnToken = ({ tokenId, url }: Profile) =>
  tokenId === undefined
    ? `End it at ${url}/console/.`
    : `Log in again, and end it: windlass token delete ${tokenId}`;

async function endToken(
  { url, username: user, tokenId: id = '' }: Profile,
  { passwordStdin }: PasswordOptions,
): Promise<void> {
  try {
    const password = await readPassword(user, passwordStdin);
    const { api } = connectTo({ url, user, password });
    await unwrap(api.DELETE('/api/users/-/tokens/{id}', { params: { path: { id } } }));
  } catch (error) {
    // It has been ended elsewhere.
    if (error instanceof WindlassError && error.status === 404) return;
    const said = describe(error);
    if (said === undefined) throw error;
    throw new CommandError(`The token was not ended: ${said}`, {
      hint: 'To forget it here alone: windlass logout --local',
    });
  }
}

/** Makes a token, and ends the one that it takes the place of. */
async function keepNewToken(url: string, { user, passwordStdin }: LoginOptions): Promise<Kept> {
  const given = user ?? (await ask('User: ', { echo: true, instead: 'Give --user NAME.' }));
  const password = await readPassword(given, passwordStdin);
  const windlass = connectTo({ url, user: given, password });
  const { api } = windlass;
  const end = (id: string) =>
    unwrap(api.DELETE('/api/users/-/tokens/{id}', { params: { path: { id } } }));
  // A profile that cannot be read is written anew.
  const earlier = await readProfile(process.env).catch(() => undefined);
  const username = await readUsername(windlass);
  const body = { name: `windlass on ${hostname()}`.slice(0, 100), scope: 'write' as const };
  const { id: tokenId, token } = await unwrap(api.POST('/api/users/-/tokens', { body }));
  try {
    const path = await writeProfile(process.env, { url, username, token, tokenId });
    const isReplaced = earlier?.url === url && earlier.username === username;
    // It may have been ended by hand.
    if (isReplaced && earlier.tokenId) await end(earlier.tokenId).catch(() => {});
    return { username, path };
  } catch (error) {
    await end(tokenId).catch(() => {});
    throw error;
  }
}
