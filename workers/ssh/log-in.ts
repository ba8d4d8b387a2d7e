import ssh2 from 'ssh2';
import type { HostRow } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { Credential } from '../../shared/secrets/secrets.ts';
import { CURRENT_ALGORITHMS, type SshAlgorithms } from '../../shared/ssh/algorithms.ts';
import { keyLine, signatureAlgorithms } from '../../shared/ssh/keys.ts';
import { type Ask, Authentication, type Round } from './authentication.ts';
import { signByCertificate } from './certified-key.ts';
import { fetchCertificate } from './fetch-certificate.ts';
import { HostWords, readable } from './host-words.ts';
import type { Transport } from './limit-login.ts';
import { DIALOGUE_MS } from './login-dialogue.ts';
import { accountUnusable, toLoginError } from './login-errors.ts';
import { hearNotices } from './login-notices.ts';
import type { Permit } from './login-refusals.ts';
import { LoginTimer, tooLate } from './login-timer.ts';
import { offer, openConnection } from './open-connection.ts';
import { showKeys } from './scan-host-keys.ts';
import { type SeenCertificates, TrustedKeys } from './trusted-keys.ts';

/** How often an idle connection sends a request that every server answers (RFC 4254, 4). */
const KEEPALIVE_MS = 3_000;
/** A connection that received no byte at so many checks is closed. */
const CHECK_MS = 1_000;
const MAX_SILENT_CHECKS = 12;

interface Login {
  host: HostRow;
  /** Those to it; it is the last. */
  hops: HostRow[];
  /** What hosts have shown to this worker before. */
  seen: SeenCertificates;
  username: string;
  credential: Credential;
  /** Makes the connection; called again if the host must show another key. */
  reach(): Promise<Transport>;
  /** Answers what the host asks for besides the credential. */
  ask?: Ask;
  /** Awaited before anything secret is sent. */
  permit?: Permit;
  /** For the key exchange and the login. */
  loginMs: number;
  algorithms?: SshAlgorithms;
}

/** A connection that is logged in. */
export interface Connection {
  client: ssh2.Client;
  /** What the host said at the login. */
  banner: string;
}

/** Connections to a host that shows another key, with a new certificate, each time. */
const MAX_TRIES = 4;

/**
 * Logs in to a host with a pinned or certified key, over the connection from `reach`. No byte of a credential is sent
 * before the key is verified. Throws `host_key_changed`, `remote_authentication_failed`, `account_unusable`,
 * `remote_connection_failed`.
 */
export async function logIn(login: Login, signal: AbortSignal): Promise<Connection> {
  const { host, hops, reach, loginMs: ms, seen, algorithms = CURRENT_ALGORITHMS } = login;
  const fetch = () => fetchCertificate({ host, reach, ms, algorithms }, signal);
  const trusted = new TrustedKeys({ host, hops, seen, fetch });
  for (let tries = 1; ; tries++) {
    const ended = await logInByKeys({ ...login, keys: await trusted.read() }, signal);
    if ('client' in ended) return ended;
    if (tries === MAX_TRIES || !(await trusted.renew())) throw trusted.refuse(ended.shown);
  }
}

/** The connection, or the key that the host shows and that is none of `keys`. */
async function logInByKeys(
  { host, username, credential, reach, loginMs, keys, ...given }: Login & { keys: Buffer[] },
  signal: AbortSignal,
): Promise<Connection | { shown: Buffer }> {
  const { ask = refuseToAnswer, permit, algorithms = CURRENT_ALGORITHMS } = given;
  let shown: Buffer | undefined;
  const isTrusted = (key: Buffer) => keys.some(known => known.equals(key));
  const client = new ssh2.Client();
  const words = new HostWords(client);
  const transport = await reach();
  let fail = (_error: unknown) => {};
  const timer = new LoginTimer({ ms: loginMs, longestMs: DIALOGUE_MS }, () => fail(tooLate()));
  const login = {
    username,
    credential,
    ask: (round: Round) => timer.whileUserAnswers(ask(round)),
    permit,
  };
  const authentication = new Authentication(login, words, error => fail(error));
  client.on('change password', prompt => fail(accountUnusable(readable(prompt))));
  const options: ssh2.ConnectConfig = {
    username,
    authHandler: authentication.next,
    // The timer's, which does not count the user's time.
    readyTimeout: 0,
    keepaliveInterval: KEEPALIVE_MS,
    // Answers come late behind much output: closeWhenSilent() counts any byte instead.
    keepaliveCountMax: Number.POSITIVE_INFINITY,
    algorithms: offer(signatureAlgorithms(keys.map(keyLine)), algorithms),
    hostVerifier: (key: Buffer) => {
      shown = key;
      return isTrusted(key);
    },
  };
  const onBegun = (reject: (error: unknown) => void) => {
    fail = reject;
    hearNotices(client, notice => {
      words.add(notice);
      // It may wait for what the user does elsewhere.
      timer.extend();
    });
    if (credential.certificate !== undefined) signByCertificate(client);
  };
  try {
    await openConnection(client, transport, { options, signal, onBegun });
  } catch (error) {
    client.destroy();
    if (signal.aborted) throw signal.reason;
    // Only trusted key types were offered: a host that has none of them shows its key only for another type.
    const noCommonType = !shown && (error as { level?: string }).level === 'handshake';
    if (noCommonType) shown = (await showKeys({ host, reach, algorithms }, signal).next()).value;
    if (shown && !isTrusted(shown)) return { shown };
    throw toLoginError(error as Error & { level?: string }, {
      host,
      words,
      hasShownKey: shown !== undefined,
    });
  } finally {
    timer.stop();
  }
  closeWhenSilent(client, transport);
  return { client, banner: words.banner };
}

/** Counts checks, not time: a process that was stopped meanwhile did not listen. */
function closeWhenSilent(client: ssh2.Client, transport: Transport): void {
  let seen = transport.bytesRead;
  let silentChecks = 0;
  const timer = setInterval(() => {
    silentChecks = transport.bytesRead === seen ? silentChecks + 1 : 0;
    seen = transport.bytesRead;
    if (silentChecks >= MAX_SILENT_CHECKS) transport.destroy();
  }, CHECK_MS);
  timer.unref();
  client.once('close', () => clearInterval(timer));
}

/** Gives no answer for the user: a host may count a wrong one against the account. */
const refuseToAnswer: Ask = async () => {
  throw new WindlassError('remote_authentication_failed', {
    detail: 'The host asks for more than the password or key.',
    hint: 'Open a new session.',
  });
};
