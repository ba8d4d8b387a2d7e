import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { IdentityProvider } from './identity-provider.ts';

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');

test('many access tokens at once ask for the keys of the provider once', async () => {
  let asked = 0;
  const server = createServer((req, res) => {
    const { port } = server.address() as AddressInfo;
    const issuer = `http://127.0.0.1:${port}`;
    if (req.url === '/keys') asked++;
    const discovery = { issuer, jwks_uri: `${issuer}/keys` };
    res.setHeader('Content-Type', 'application/json');
    res.end(JSON.stringify(req.url === '/keys' ? { keys: [] } : discovery));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const provider = new IdentityProvider({
      issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      clientId: 'windlass',
      clientSecret: undefined,
      scopes: 'openid',
      audience: 'api',
      redirectUri: 'http://127.0.0.1/callback',
    });
    const token = `${encode({ alg: 'RS256', kid: 'one' })}.${encode({ sub: 'somebody' })}.AAAA`;
    const verified = Array.from({ length: 50 }, () => provider.verifyAccessToken(token));
    for (const { status } of await Promise.allSettled(verified)) expect(status).toBe('rejected');
    expect(asked).toBe(1);
  } finally {
    server.close();
  }
});
