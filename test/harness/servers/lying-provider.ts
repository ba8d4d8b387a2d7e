import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose';

export interface Signer {
  jwk: JWK;
  sign(claims: JWTPayload, header?: Record<string, unknown>): Promise<string>;
}

/** A key pair of a provider: its public part, and tokens signed with the private one. */
export async function makeSigner(kid: string | undefined): Promise<Signer> {
  const { privateKey, publicKey } = await generateKeyPair('ES256');
  const name = kid === undefined ? {} : { kid };
  return {
    jwk: { ...(await exportJWK(publicKey)), ...name },
    sign: (claims, header = {}) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: 'ES256', ...name, ...header })
        .setIssuedAt()
        .setExpirationTime('5m')
        .sign(privateKey),
  };
}

/** A server at an issuer's address that gives the answers of the test, as no proper provider does. */
export interface LyingProvider {
  issuer: string;
  /** What it answers at a path, from now on: a JSON document, or whatever a function does. */
  answer(path: string, as: object | RequestListener): void;
  /** Its discovery document, with other members. */
  discover(more: object): void;
  /** Requests of a path so far. */
  asked(path: string): number;
  stop(): Promise<void>;
}

export const DISCOVERY = '/.well-known/openid-configuration';

export async function startLyingProvider(): Promise<LyingProvider> {
  const answers = new Map<string, object | RequestListener>();
  const asked = new Map<string, number>();
  const server = createServer((req, res) => {
    const path = req.url?.split('?')[0] ?? '';
    asked.set(path, (asked.get(path) ?? 0) + 1);
    const answer = answers.get(path);
    if (typeof answer === 'function') answer(req, res);
    else sendJson(res, answer ?? {}, answer ? 200 : 404);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider: LyingProvider = {
    issuer,
    answer: (path, as) => void answers.set(path, as),
    discover: more =>
      void answers.set(DISCOVERY, {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/keys`,
        id_token_signing_alg_values_supported: ['ES256'],
        ...more,
      }),
    asked: path => asked.get(path) ?? 0,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  provider.discover({});
  return provider;
}

function sendJson(res: ServerResponse, document: object, status = 200): void {
  res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(document));
}

/** An answer that never ends, as fast as it is read, and how much of such answers went out. */
export function answerEndlessly(): { answer: RequestListener; sent(): number } {
  let sent = 0;
  return {
    sent: () => sent,
    answer(_req, res) {
      res.writeHead(200, { 'Content-Type': 'application/json' });
      const block = Buffer.alloc(1 << 16, ' ');
      const write = () => {
        while (!res.destroyed) {
          sent += block.length;
          if (!res.write(block)) break;
        }
      };
      res.on('drain', write);
      write();
    },
  };
}
