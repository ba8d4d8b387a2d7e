import ssh2 from 'ssh2';
import { WindlassError } from '../../shared/errors/errors.ts';
import { abortable } from '../../shared/process/abort.ts';
import { CURRENT_ALGORITHMS, type SshAlgorithms } from '../../shared/ssh/algorithms.ts';
import { keyLine } from '../../shared/ssh/keys.ts';
import { dial, unreachable } from './dial.ts';
import { CONNECTION_LIMITS, type Transport } from './limit-login.ts';
import { toLoginError } from './login-errors.ts';
import { offer, openConnection } from './open-connection.ts';
import { resolveHost } from './resolve-host.ts';

/** For all of a scan. */
const SCAN_MS = 60_000;
/** One algorithm for each type of host key. */
const KEY_TYPES = ['ssh-ed25519', 'ecdsa-sha2-nistp256', 'rsa-sha2-512'] as const;

/**
 * Connects once for each key type, without a login, and returns the lines of the host's keys, for an administrator who
 * trusts them on first use.
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
    const addresses = await abortable(resolveHost(host), signal);
    const reach = () =>
      dial({ addresses, port: host.port, timeoutMs: CONNECTION_LIMITS.connectMs }, signal);
    for await (const key of showKeys({ host, reach, algorithms }, signal)) found.add(keyLine(key));
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

interface Scanned {
  host: { address: string; port: number };
  /** Connects to it, once for each key. */
  reach(): Promise<Transport>;
  algorithms: SshAlgorithms;
}

/** The host's keys, one connection for each type. */
export async function* showKeys(
  scanned: Scanned,
  signal: AbortSignal,
): AsyncGenerator<Buffer, undefined> {
  for (const keyType of KEY_TYPES) {
    const key = await showKey(scanned, keyType, signal);
    if (key) yield key;
  }
}

async function showKey(
  { host, reach, algorithms }: Scanned,
  keyType: string,
  signal: AbortSignal,
): Promise<Buffer | undefined> {
  const client = new ssh2.Client();
  let shown: Buffer | undefined;
  const transport = await reach();
  const options: ssh2.ConnectConfig = {
    username: 'nobody',
    readyTimeout: CONNECTION_LIMITS.loginMs,
    algorithms: offer([keyType], algorithms),
    hostVerifier: (key: Buffer) => {
      shown = key;
      return false;
    },
  };
  try {
    await openConnection(client, transport, { options, signal });
  } catch (error) {
    const { level } = error as { level?: string };
    if (!shown && level !== 'handshake') throw toLoginError(error as Error, { host });
  } finally {
    client.destroy();
  }
  return shown;
}
