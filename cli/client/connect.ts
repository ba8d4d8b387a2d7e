import { unwrap } from '../../clients/typescript/src/api.ts';
import type { ConnectionOptions } from '../../clients/typescript/src/http.ts';
import { Windlass } from '../../clients/typescript/src/windlass.ts';
import { CommandError } from '../command-error.ts';
import { useNetworkOf } from '../network.ts';
import { printNotice } from '../output/print-notice.ts';
import { readPassword } from '../secret-input.ts';
import { type Profile, readProfile } from './profile.ts';

type ServiceLogin = Pick<Profile, 'url' | 'token'>;

/**
 * The service that this user logged in to. WINDLASS_URL goes before what `windlass login` kept, and WINDLASS_TOKEN is sent to no
 * other service than that of WINDLASS_URL. Throws CommandError where that is unset: it may be of another than the one kept.
 */
export async function findService(): Promise<ServiceLogin> {
  const kept = await readProfile(process.env);
  const { WINDLASS_URL, WINDLASS_TOKEN } = process.env;
  if (WINDLASS_TOKEN && !WINDLASS_URL)
    throw new CommandError(
      'WINDLASS_TOKEN is set without WINDLASS_URL, which says to whom it is sent.',
      {
        hint: 'Set both, or neither.',
      },
    );
  const url = WINDLASS_URL ?? kept?.url;
  // A token is not sent to another service than the one that it was made for.
  const token =
    WINDLASS_TOKEN ??
    (url && kept && normalizeUrl(url) === normalizeUrl(kept.url) ? kept.token : undefined);
  if (url && token) return { url: normalizeUrl(url), token: checkToken(token) };
  throw new CommandError(url ? `There is no login for ${url}.` : 'You are not logged in.', {
    hint: `Run: windlass login ${url ?? 'URL'}`,
  });
}

/** Throws CommandError for what is no token. */
export function checkToken(token: string): string {
  // No header can have others (RFC 9110, 5.5), nor has a token.
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new CommandError('The token has a character that no token has, such as a line break.', {
    hint: 'Check WINDLASS_TOKEN, or log in again: windlass login URL.',
  });
}

/** A client of that service. It tells on standard error when the service is unreachable. */
export async function connect(): Promise<Windlass> {
  return connectTo(await findService());
}

export interface PasswordOptions {
  passwordStdin?: boolean;
}

/** A client with the user's password, for what a token may not do. */
export async function connectByPassword({ passwordStdin }: PasswordOptions): Promise<Windlass> {
  const login = await findService();
  const { username: user } = await unwrap(connectTo(login).api.GET('/api/users/-'));
  const password = await readPassword(user, passwordStdin);
  return connectTo({ url: login.url, user, password });
}

export function connectTo(options: ConnectionOptions): Windlass {
  useNetworkOf(process.env, options.url);
  return new Windlass({ ...options, onRetry: tellOfRetries() });
}

/** Tells once on standard error that the service is unreachable. */
function tellOfRetries(): NonNullable<ConnectionOptions['onRetry']> {
  let isTold = false;
  return ({ error, seconds }) => {
    // The first retry may follow a stream that its server ended in good order.
    if (isTold || seconds < 1) return;
    isTold = true;
    printNotice(`${error.detail} Trying again.`);
  };
}

/** An address as of a page of the service, without what follows the service's own. Throws CommandError for what is none. */
export function normalizeUrl(given: string): string {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  const [, base = '', ofPage] =
    /^(.*?)(\/(?:console|api)(?:\/.*)?)?$/.exec(url?.pathname ?? '') ?? [];
  const isPlain = ofPage !== undefined || url?.search === '';
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username || !isPlain)
    throw new CommandError(`${given} is no address of a service.`, {
      hint: 'Give it as https://windlass.example.org.',
    });
  return `${url.origin}${base.replace(/(?<!\/)\/+$/, '')}`;
}
