import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { type ConnectionOptions, connect } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTlsServer, type TlsServer } from '../../test/harness/servers/tls-server.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import { findTlsFault } from './tls-faults.ts';

/** What Node says of a connection. */
async function failureOf(options: ConnectionOptions): Promise<unknown> {
  const socket = connect({ host: '127.0.0.1', ...options });
  try {
    await once(socket, 'secureConnect');
    return undefined;
  } catch (error) {
    return error;
  } finally {
    socket.destroy();
  }
}

describeUnless(missingPrograms('openssl'), 'what Node says of TLS', () => {
  // It answers in plain text, to whatever it is sent.
  const plain = createServer(socket => socket.on('error', () => {}).end('-ERR unknown\r\n'));
  let server: TlsServer;
  beforeAll(async () => {
    await once(plain.listen(0, '127.0.0.1'), 'listening');
    server = await startTlsServer({ host: '127.0.0.1', port: portOf() });
  });
  afterAll(async () => {
    await server?.stop();
    plain.close();
  });
  const portOf = () => (plain.address() as AddressInfo).port;

  test('is told by its reason and with a remedy', async () => {
    const { port, certificate: ca } = server;
    expect(await failureOf({ port, ca, servername: 'windlass.test' })).toBeUndefined();
    const untrusted = await failureOf({ port });
    expect(findTlsFault(untrusted)).toEqual({
      isUntrusted: true,
      reason: 'its certificate is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)',
      remedy: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
    });
    expect(findTlsFault(new Error('away', { cause: untrusted }))).toEqual(findTlsFault(untrusted));
    expect(findTlsFault(await failureOf({ port, ca, servername: 'other.test' }))).toMatchObject({
      isUntrusted: false,
      reason: expect.stringMatching(/^its certificate is for another name \(ERR_TLS_/),
    });
    expect(findTlsFault(await failureOf({ port: portOf() }))).toMatchObject({
      isUntrusted: false,
      reason: expect.stringMatching(/^it speaks no TLS \(/),
      remedy: 'Give its URL as http:// or redis://, without TLS',
    });
    expect(findTlsFault(await failureOf({ port, ca, maxVersion: 'TLSv1' }))).toMatchObject({
      isUntrusted: false,
      reason: expect.stringMatching(/^TLS with it fails \(/),
    });
  });

  test('and no other failure is taken for one', async () => {
    expect(findTlsFault(await failureOf({ port: 1 }))).toBeUndefined();
    expect(findTlsFault('CERT_HAS_EXPIRED')).toBeUndefined();
    expect(findTlsFault(new Error('certificate'))).toBeUndefined();
  });
});

test('each of the codes of certificates is one', () => {
  const codes =
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY UNABLE_TO_VERIFY_LEAF_SIGNATURE SELF_SIGNED_CERT_IN_CHAIN CERT_HAS_EXPIRED CERT_NOT_YET_VALID CERT_REVOKED INVALID_CA INVALID_PURPOSE CERT_CHAIN_TOO_LONG';
  for (const code of codes.split(' '))
    expect(findTlsFault(Object.assign(new Error('x'), { code }))?.reason).toContain(`(${code})`);
});
