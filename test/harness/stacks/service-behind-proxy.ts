import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { makeTempDir } from '../files/temp-dir.ts';

/** A service as an institute may have it: with a certificate that only the institute trusts, and behind its proxy. */
export interface ServiceBehindProxy {
  /** A name that nobody but the proxy knows. */
  url: string;
  /** The URL of an HTTP proxy, which takes CONNECT alone. */
  proxy: string;
  /** A file with the certificate that is to be trusted. */
  authority: string;
  stop(): Promise<void>;
}

/** Needs openssl. */
export async function startServiceBehindProxy(service: string): Promise<ServiceBehindProxy> {
  const { path, remove } = makeTempDir('proxy');
  const [key, certificate] = [join(path, 'key.pem'), join(path, 'certificate.pem')];
  const name = 'windlass.test';
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', `/CN=${name}`],
      ...['-addext', `subjectAltName=DNS:${name}`, '-keyout', key, '-out', certificate],
    ],
    { stdio: 'ignore' },
  );
  const { hostname, port } = new URL(service);
  const open = new Set<Socket>();
  const link = (one: Socket, other: Socket) => {
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      open.add(from);
      from.on('error', () => to.destroy());
      from.once('close', () => open.delete(from));
      from.pipe(to);
    }
  };
  const front = createTlsServer(
    { key: readFileSync(key), cert: readFileSync(certificate) },
    client => link(client, connect(Number(port), hostname)),
  );
  front.on('tlsClientError', () => {});
  const proxy = createServer((_req, res) => res.writeHead(405).end());
  proxy.on('connect', ({ url }, client: Socket) => {
    if (url !== `${name}:443`) return void client.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    client.write('HTTP/1.1 200 OK\r\n\r\n');
    link(client, connect((front.address() as AddressInfo).port, '127.0.0.1'));
  });
  for (const server of [front, proxy]) await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `https://${name}`,
    proxy: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    authority: certificate,
    async stop() {
      const closed = [front, proxy].map(server => new Promise(settle => server.close(settle)));
      for (const socket of open) socket.destroy();
      proxy.closeAllConnections();
      await Promise.all(closed);
      remove();
    },
  };
}
