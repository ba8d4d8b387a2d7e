import type { Socket } from 'node:net';
import ssh2 from 'ssh2';
import { abortable } from '../../shared/abort.ts';
import type { HostRow } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';
import { hopsOf, hostChanged, placeOf } from '../../shared/host-place.ts';
import type { Credential } from '../../shared/secrets.ts';
import { CURRENT_ALGORITHMS, type SshAlgorithms } from '../../shared/ssh-algorithms.ts';
import { fingerprint, keyBytes, keyLine, signatureAlgorithms } from '../../shared/ssh-keys.ts';
import { dial, unreachable } from './dial.ts';
import { limitLogin } from './limit-login.ts';
import { resolveHost } from './resolve-host.ts';

/** For TCP, then for the key exchange and the login, for which sshd itself allows 120 s. */
const LIMITS = { connectMs: 10_000, loginMs: 20_000 };
/** For all of a scan. */
const SCAN_MS = 60_000;
/** A request that every server answers (RFC 4254, 4) is sent this often over an idle connection. */
const KEEPALIVE_MS = 3_000;
/** A connection that received no byte at so many checks is closed. */
const CHECK_MS = 1_000;
const MAX_SILENT_CHECKS = 12;
/** One algorithm for each type of host key. */
const KEY_TYPES = ['ssh-ed25519', 'ecdsa-sha2-nistp256', 'rsa-sha2-512'] as const;

export interface Target {
  host: HostRow;
  username: string;
  credential: Credential;
  /** Where the credential may be sent; undefined where it was sealed by the release before. */
  place?: string;
  limits?: typeof LIMITS;
  algorithms?: SshAlgorithms;
}

/**
 * Logs in to a host whose key is pinned. No byte of a credential is sent before the key is verified, and none to another place
 * than it was sealed for. Throws `host_changed`, `host_key_changed`, `remote_authentication_failed`, `host_not_allowed`,
 * `remote_connection_failed`.
 */
export async function connect(target: Target, signal: AbortSignal): Promise<ssh2.Client> {
  const { username, credential, limits = LIMITS, algorithms = CURRENT_ALGORITHMS } = target;
  // A copy: what is checked is what is connected to.
  const host = structuredClone(target.host);
  if (target.place !== undefined && target.place !== placeOf(hopsOf(host)))
    throw hostChanged(host.name);
  let shown: Buffer | undefined;
  const pinned = host.keys.map(keyBytes);
  const isPinned = (key: Buffer) => pinned.some(known => known.equals(key));
  const options: ssh2.ConnectConfig = {
    username,
    ...credential,
    // Without it ssh2 skips the method that the handler picks.
    tryKeyboard: 'password' in credential,
    authHandler: tryMethodsOnce(credential),
    readyTimeout: limits.loginMs,
    keepaliveInterval: KEEPALIVE_MS,
    // Answers come late behind much output: closeWhenSilent() counts any byte instead.
    keepaliveCountMax: Number.POSITIVE_INFINITY,
    algorithms: offer(signatureAlgorithms(host.keys), algorithms),
    hostVerifier: (key: Buffer) => {
      shown = key;
      return isPinned(key);
    },
  };
  const address = await abortable(resolveHost(host), signal);
  const socket = await dial({ address, port: host.port, timeoutMs: limits.connectMs }, signal);
  const client = new ssh2.Client();
  answerPrompts(client, credential);
  try {
    await openConnection(client, socket, { options, signal });
  } catch (error) {
    client.destroy();
    if (signal.aborted) throw signal.reason;
    // Only the pinned types were offered: a host without any of them must be asked for another type to show its key.
    const noCommonType = !shown && (error as { level?: string }).level === 'handshake';
    if (noCommonType)
      shown = (await showKeys({ address, port: host.port, algorithms }, signal).next()).value;
    if (shown && !isPinned(shown))
      throw new WindlassError('host_key_changed', {
        detail: `Host key changed: ${host.name} shows ${fingerprint(shown)}, pinned is ${pinned.map(fingerprint).join(', ')}.`,
        hint: "Somebody may be listening in. If the change is right, a server administrator sets the new key in the host's entry.",
      });
    throw toWindlassError(error as Error & { level?: string }, target);
  }
  closeWhenSilent(client, socket);
  return client;
}

/** Counts checks, not time: a process that was stopped meanwhile did not listen. */
function closeWhenSilent(client: ssh2.Client, socket: Socket): void {
  let seen = socket.bytesRead;
  let silentChecks = 0;
  const timer = setInterval(() => {
    silentChecks = socket.bytesRead === seen ? silentChecks + 1 : 0;
    seen = socket.bytesRead;
    if (silentChecks >= MAX_SILENT_CHECKS) socket.destroy();
  }, CHECK_MS);
  timer.unref();
  client.once('close', () => clearInterval(timer));
}

/**
 * Tries one method, once: a server that takes a password in two ways would count two refusals, and address bans count them.
 */
function tryMethodsOnce(credential: Credential): ssh2.AuthHandlerMiddleware {
  const wanted: ssh2.AuthenticationType[] =
    'password' in credential ? ['password', 'keyboard-interactive'] : ['publickey'];
  let tries = 0;
  return (left: ssh2.AuthenticationType[] | null) => {
    tries++;
    // RFC 4252, 5.2: the answer to `none` is the list of methods.
    if (tries === 1) return 'none';
    return (tries === 2 && wanted.find(method => left?.includes(method))) || false;
  };
}

/** RFC 4256. The password is sent once: a server that prompts again has refused it. */
function answerPrompts(client: ssh2.Client, credential: Credential): void {
  let password = 'password' in credential ? credential.password : '';
  client.on('keyboard-interactive', (_name, _instructions, _language, prompts, answer) => {
    answer(prompts.map(prompt => (prompt.echo ? '' : password)));
    if (prompts.some(prompt => !prompt.echo)) password = '';
  });
}

/**
 * Connects once for each type of key, without logging in, and returns the lines of the keys that the host shows. For hosts
 * that an administrator trusts on first use.
 */
export async function scanHostKeys(
  host: { address: string; port: number; private: boolean },
  outer: AbortSignal,
  algorithms: SshAlgorithms = CURRENT_ALGORITHMS,
): Promise<string[]> {
  const timeout = AbortSignal.timeout(SCAN_MS);
  const signal = AbortSignal.any([outer, timeout]);
  const found = new Set<string>();
  try {
    const address = await abortable(resolveHost(host), signal);
    for await (const key of showKeys({ address, port: host.port, algorithms }, signal))
      found.add(keyLine(key));
  } catch (error) {
    if (outer.aborted || !timeout.aborted) throw error;
    throw unreachable(host, `no host key within ${SCAN_MS / 1_000} s.`);
  }
  if (found.size > 0) return [...found];
  throw new WindlassError('remote_connection_failed', {
    detail: `${host.address}:${host.port} shows no host key that Windlass knows.`,
    hint: 'Check that an SSH server listens there.',
  });
}

/** The host's keys, one connection for each type. */
async function* showKeys(
  at: { address: string; port: number; algorithms: SshAlgorithms },
  signal: AbortSignal,
): AsyncGenerator<Buffer, undefined> {
  for (const keyType of KEY_TYPES) {
    const key = await showKey({ ...at, keyType }, signal);
    if (key) yield key;
  }
}

async function showKey(
  at: { address: string; port: number; algorithms: SshAlgorithms; keyType: string },
  signal: AbortSignal,
): Promise<Buffer | undefined> {
  const client = new ssh2.Client();
  let shown: Buffer | undefined;
  const socket = await dial({ ...at, timeoutMs: LIMITS.connectMs }, signal);
  const options: ssh2.ConnectConfig = {
    username: 'nobody',
    readyTimeout: LIMITS.loginMs,
    algorithms: offer([at.keyType], at.algorithms),
    hostVerifier: (key: Buffer) => {
      shown = key;
      return false;
    },
  };
  try {
    await openConnection(client, socket, { options, signal });
  } catch (error) {
    const { level } = error as { level?: string };
    if (!shown && level !== 'handshake')
      throw toWindlassError(error as Error, { host: { address: at.address, port: at.port } });
  } finally {
    client.destroy();
  }
  return shown;
}

const offer = (serverHostKey: string[], algorithms: SshAlgorithms) =>
  ({ ...algorithms, serverHostKey, compress: ['none'] }) as ssh2.Algorithms;

function openConnection(
  client: ssh2.Client,
  socket: Socket,
  { options, signal }: { options: ssh2.ConnectConfig; signal: AbortSignal },
): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    client.once('ready', () => {
      signal.removeEventListener('abort', abort);
      resolve();
    });
    client.on('error', reject);
    client.once('close', () => reject(new Error('the host closed the connection')));
    limitLogin(client, socket, reject);
    client.connect({ ...options, sock: socket });
  });
}

function toWindlassError(
  error: Error & { level?: string },
  { host }: { host: { address: string; port: number } },
): WindlassError {
  if (error instanceof WindlassError) return error;
  if (error.level === 'client-authentication') {
    return new WindlassError('remote_authentication_failed', {
      detail: 'The host refused the user name, password or key.',
      hint: 'Open a new session with credentials that the host accepts.',
      cause: error,
    });
  }
  if (/no matching (?!host key)/.test(error.message))
    return new WindlassError('remote_connection_failed', {
      detail: `${host.address}:${host.port}: ${error.message}.`,
      hint: 'The host knows only older algorithms. SSH_ALGORITHMS of the workers may add some of them.',
      cause: error,
    });
  if (error.level === 'client-timeout')
    return unreachable(host, 'the SSH server did not answer, or not the login, in time.', error);
  return unreachable(host, `${error.message}.`, error);
}
