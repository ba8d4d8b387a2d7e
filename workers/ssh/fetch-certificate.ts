import type { SshAlgorithms } from '../../shared/ssh/algorithms.ts';
import { parseCertificateBlob, type SshCertificate } from '../../shared/ssh/certificates.ts';
import { CertificateHandshake, type Shown } from './certificate-handshake.ts';
import { limitLogin, type Transport } from './limit-login.ts';
import { toLoginError } from './login-errors.ts';
import { tooLate } from './login-timer.ts';

export interface Asked {
  host: { address: string; port: number };
  /** Connects to it. */
  reach(): Promise<Transport>;
  /** For the host to answer. */
  ms: number;
  algorithms: SshAlgorithms;
}

/**
 * Asks a host for its certificate over a connection of its own, as ssh2 knows no host certificates. Undefined without a
 * readable one. Only the login proves that the host has the certified key (decision 58). Throws
 * `remote_connection_failed` or the signal's reason.
 */
export async function fetchCertificate(
  { host, reach, ms, algorithms }: Asked,
  signal: AbortSignal,
): Promise<SshCertificate | undefined> {
  const transport = await reach();
  try {
    const { certificate } = await shake(transport, { ms, algorithms, signal });
    return certificate && parseCertificateBlob(certificate);
  } catch (error) {
    signal.throwIfAborted();
    throw toLoginError(error as Error, { host, hasShownKey: false });
  } finally {
    transport.on('error', () => {}).destroy();
  }
}

function shake(
  transport: Transport,
  { ms, algorithms, signal }: Pick<Asked, 'ms' | 'algorithms'> & { signal: AbortSignal },
): Promise<Shown> {
  const ended = new AbortController();
  const shaking = new Promise<Shown>((resolve, reject) => {
    signal.throwIfAborted();
    signal.addEventListener('abort', () => reject(signal.reason), { signal: ended.signal });
    const timer = setTimeout(() => reject(tooLate()), ms);
    ended.signal.addEventListener('abort', () => clearTimeout(timer));
    limitLogin(transport, reject);
    const handshake = new CertificateHandshake(algorithms, bytes => transport.write(bytes));
    transport.on('data', (bytes: Buffer) => {
      try {
        const shown = handshake.take(bytes);
        if (shown) resolve(shown);
      } catch (error) {
        reject(error);
      }
    });
    transport.once('error', reject);
    transport.once('close', () =>
      reject(new Error('the host closed the connection before handshake')),
    );
  });
  return shaking.finally(() => ended.abort());
}
