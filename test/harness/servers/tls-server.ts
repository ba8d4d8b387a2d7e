import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { makeTempDir } from '../files/temp-dir.ts';

export interface TlsServer {
  port: number;
  /** In PEM. */
  certificate: string;
  stop(): Promise<void>;
}

/**
 * Speaks TLS on a free port of 127.0.0.1 before a server that does not, with a new certificate of `windlass.test` that
 * nobody vouches for. Needs openssl.
 */
export async function startTlsServer(behind: { host: string; port: number }): Promise<TlsServer> {
  const { key, certificate } = makeCertificate();
  const open = new Set<Socket>();
  const server = createServer({ key, cert: certificate }, client => {
    const { host, port } = behind;
    const other = connect({ host, port });
    for (const socket of [client, other]) {
      open.add(socket);
      socket.on('error', () => {});
      socket.once('close', () => {
        open.delete(socket);
        client.destroy();
        other.destroy();
      });
    }
    client.pipe(other).pipe(client);
  });
  server.on('tlsClientError', () => {});
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    certificate,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

function makeCertificate(): { key: string; certificate: string } {
  const folder = makeTempDir('certificate');
  try {
    const [key, certificate] = ['key.pem', 'certificate.pem'].map(name => join(folder.path, name));
    execFileSync(
      'openssl',
      [
        ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
        ...['-days', '1', '-subj', '/CN=windlass.test', '-keyout', `${key}`],
        ...['-addext', 'subjectAltName=DNS:windlass.test', '-out', `${certificate}`],
      ],
      { stdio: 'ignore' },
    );
    return {
      key: readFileSync(`${key}`, 'utf8'),
      certificate: readFileSync(`${certificate}`, 'utf8'),
    };
  } finally {
    folder.remove();
  }
}
