import type ssh2 from 'ssh2';
import { abortable } from '../../shared/process/abort.ts';
import type { SshAlgorithms } from '../../shared/ssh/algorithms.ts';
import { limitLogin, type Transport } from './limit-login.ts';
import { refuseViolations } from './refuse-violations.ts';

/** The algorithms for a connection, with those of the host's key. */
export const offer = (serverHostKey: string[], algorithms: SshAlgorithms) =>
  ({ ...algorithms, serverHostKey, compress: ['none'] }) as ssh2.Algorithms;

interface OpenOptions {
  options: ssh2.ConnectConfig;
  signal: AbortSignal;
  /** Called once ssh2 has begun, with what ends the attempt. */
  onBegun?(fail: (error: unknown) => void): void;
}

/** Settles when the client is logged in, or with what kept it from that. */
export function openConnection(
  client: ssh2.Client,
  transport: Transport,
  { options, signal, onBegun }: OpenOptions,
): Promise<void> {
  signal.throwIfAborted();
  const opened = new Promise<void>((resolve, reject) => {
    client.once('ready', resolve);
    client.on('error', reject);
    client.once('close', () => reject(new Error('the host closed the connection')));
    client.once('ready', limitLogin(transport, reject));
    client.connect({ ...options, sock: transport });
    refuseViolations(client, transport);
    onBegun?.(reject);
  });
  // One signal may see many attempts.
  return abortable(opened, signal);
}
