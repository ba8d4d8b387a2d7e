import { hostname } from 'node:os';
import { unwrap } from '../../../clients/typescript/src/api.ts';
import { WindlassError } from '../../../clients/typescript/src/error.ts';
import { CommandError } from '../../command-error.ts';
import { printNotice } from '../../output/print-notice.ts';
import { printDone, printRecord } from '../../output/print-records.ts';
import { readPassword, readSecretLine } from '../../secret-input.ts';
import { ask } from '../../terminal.ts';
import { checkToken, connectTo, normalizeUrl, type PasswordOptions } from '../connect.ts';
import { readProfile, removeProfile, writeProfile } from '../profile.ts';

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
  const { username } = await unwrap(connectTo({ url, token }).api.GET('/api/users/-'));
  return { username, path: await writeProfile(process.env, { url, username, token }) };
}

/** `windlass logout`: ends the token, which only the password can, and forgets it. */
export async function logOut(options: PasswordOptions & { json?: boolean }): Promise<void> {
  const profile = await readProfile(process.env);
  if (!profile)
    throw new CommandError('You are not logged in.', { hint: 'Run: windlass login URL' });
  const { url, username: user, tokenId } = profile;
  if (tokenId !== undefined) {
    const password = await readPassword(user, options.passwordStdin);
    const { api } = connectTo({ url, user, password });
    const params = { path: { id: tokenId } };
    await unwrap(api.DELETE('/api/users/-/tokens/{id}', { params })).catch((error: unknown) => {
      // It has been ended elsewhere.
      if (!(error instanceof WindlassError && error.status === 404)) throw error;
    });
  }
  await removeProfile(process.env);
  await printDone({ url, username: user, loggedOut: true }, options);
}

/** Makes a token, and ends the one that it takes the place of. */
async function keepNewToken(url: string, { user, passwordStdin }: LoginOptions): Promise<Kept> {
  const given = user ?? (await ask('User: ', { echo: true, instead: 'Give --user NAME.' }));
  const password = await readPassword(given, passwordStdin);
  const { api } = connectTo({ url, user: given, password });
  const endToken = (id: string) =>
    unwrap(api.DELETE('/api/users/-/tokens/{id}', { params: { path: { id } } }));
  // A profile that cannot be read is written anew.
  const earlier = await readProfile(process.env).catch(() => undefined);
  const { username } = await unwrap(api.GET('/api/users/-'));
  const body = { name: `windlass on ${hostname()}`.slice(0, 100), scope: 'write' as const };
  const { id: tokenId, token } = await unwrap(api.POST('/api/users/-/tokens', { body }));
  try {
    const path = await writeProfile(process.env, { url, username, token, tokenId });
    const isReplaced = earlier?.url === url && earlier.username === username;
    // It may have been ended by hand.
    if (isReplaced && earlier.tokenId) await endToken(earlier.tokenId).catch(() => {});
    return { username, path };
  } catch (error) {
    await endToken(tokenId).catch(() => {});
    throw error;
  }
}
