import { hostname } from 'node:os';
import { unwrap } from '../../../clients/typescript/src/api.ts';
import { CommandError } from '../../command-error.ts';
import { connectTo, normalizeUrl } from '../connect.ts';
import { readProfile, removeProfile, writeProfile } from '../profile.ts';
import { readPassword, readSecretLine } from '../secret-input.ts';
import { ask } from '../terminal.ts';

export interface LoginOptions {
  user?: string;
  passwordStdin?: boolean;
  tokenStdin?: boolean;
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** `windlass login`: keeps the address of a service and a token of its user. */
export async function logIn(given: string, options: LoginOptions): Promise<void> {
  const url = normalizeUrl(given);
  const { protocol, hostname: host } = new URL(url);
  if (protocol === 'http:' && !LOOPBACK.test(host))
    process.stderr.write('windlass: http: whoever is on the way can read the password.\n');
  const profile = options.tokenStdin
    ? { token: await readSecretLine('the token') }
    : await makeToken(url, options);
  const windlass = connectTo({ url, token: profile.token });
  const { username } = await unwrap(windlass.api.GET('/api/users/-'));
  const path = await writeProfile(process.env, { url, username, ...profile });
  process.stdout.write(`Logged in to ${url} as ${username}; the token is in ${path}.\n`);
}

/** `windlass logout`: ends the token, which only the password can, and forgets it. */
export async function logOut(options: { passwordStdin?: boolean }): Promise<void> {
  const profile = await readProfile(process.env);
  if (!profile) throw new CommandError('You are not logged in.');
  const { url, username: user, tokenId } = profile;
  if (tokenId !== undefined) {
    const password = await readPassword(user, options.passwordStdin);
    const { api } = connectTo({ url, user, password });
    const params = { path: { id: tokenId } };
    await unwrap(api.DELETE('/api/users/-/tokens/{id}', { params }));
  }
  await removeProfile(process.env);
}

async function makeToken(
  url: string,
  { user, passwordStdin }: LoginOptions,
): Promise<{ token: string; tokenId: string }> {
  const username = user ?? (await ask('User: ', { echo: true, instead: 'Give --user NAME.' }));
  const password = await readPassword(username, passwordStdin);
  const windlass = connectTo({ url, user: username, password });
  const body = { name: `windlass on ${hostname()}`.slice(0, 100), scope: 'write' as const };
  const { id, token } = await unwrap(windlass.api.POST('/api/users/-/tokens', { body }));
  return { token, tokenId: id };
}
