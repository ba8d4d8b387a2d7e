import { randomBytes } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeJwt, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import Provider, { type Configuration } from 'oidc-provider';
import * as client from 'openid-client';
import { RedirectBrowser } from '../browser/redirect-browser.ts';

/** The service, as it is registered there. */
export const CLIENT = { id: 'windlass', secret: 'the secret of windlass there' };
/** A program that gets access tokens for the service. */
const PROGRAM = { id: 'program', callback: 'https://program.example/callback' };
/** The audience of access tokens for the service. */
export const AUDIENCE = 'https://windlass.example/api';

export interface TestProvider {
  issuer: string;
  /** The claims of who has an account there, by subject. */
  users: Map<string, Record<string, unknown>>;
  /** While the work lasts, changes the ID tokens that it sends. */
  lie<T>(change: (claims: JWTPayload) => JWTPayload, work: () => Promise<T>): Promise<T>;
  /** While the work lasts, takes each code as often as it comes. */
  takeCodesTwice<T>(work: () => Promise<T>): Promise<T>;
  /** While the work lasts, answers no question for UserInfo; `asked` resolves at the first one. */
  holdUserInfo<T>(work: (asked: Promise<unknown>) => Promise<T>): Promise<T>;
  /** An access token for the service, as a program gets it when this subject logs in. */
  accessToken(subject: string): Promise<string>;
  /** The same with other claims, signed by the provider, or by somebody else with a key of the same name. */
  change(token: string, claims: JWTPayload, by?: 'provider' | 'somebody'): Promise<string>;
  stop(): Promise<void>;
}

/**
 * A real identity provider in this process, node-oidc-provider. It asks nobody for a password: who sits at a browser is
 * told by the cookie `who` there.
 */
export async function startOidcProvider(callback: string): Promise<TestProvider> {
  const keys = await generateKeyPair('RS256', { extractable: true });
  const foreign = await generateKeyPair('RS256');
  const kid = 'one';
  const users: TestProvider['users'] = new Map();
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const configuration: Configuration = {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [callback],
        scope: 'openid profile',
      },
      {
        client_id: PROGRAM.id,
        redirect_uris: [PROGRAM.callback],
        token_endpoint_auth_method: 'none',
      },
    ],
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    features: {
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: 'api',
          audience: AUDIENCE,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    findAccount(_context, subject) {
      const claims = users.get(subject);
      return claims && { accountId: subject, claims: () => ({ sub: subject, ...claims }) };
    },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    jwks: { keys: [{ ...(await exportJWK(keys.privateKey)), kid, alg: 'RS256', use: 'sig' }] },
    // Nobody is asked for consent.
    async loadExistingGrant({ oidc }) {
      const { client, session } = oidc;
      const known = session?.grantIdFor(client?.clientId ?? '');
      // A code that comes twice ends its grant (RFC 6749, 4.1.2).
      const found = known && (await provider.Grant.find(known));
      if (found) return found;
      const grant = new provider.Grant({
        clientId: client?.clientId ?? '',
        accountId: session?.accountId ?? '',
      });
      grant.addOIDCScope('openid profile');
      grant.addResourceScope(AUDIENCE, 'api');
      await grant.save();
      return grant;
    },
    ttl: {
      AccessToken: 300,
      AuthorizationCode: 60,
      Grant: 3_600,
      IdToken: 300,
      Interaction: 600,
      Session: 3_600,
    },
  };
  const provider = new Provider(issuer, configuration);
  const sign = (claims: JWTPayload, typ: string, { privateKey } = keys) =>
    new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid, typ }).sign(privateKey);

  let changeIdToken: ((claims: JWTPayload) => JWTPayload) | undefined;
  let beforeUserInfo: (() => Promise<unknown>) | undefined;
  const test: TestProvider = {
    issuer,
    users,
    async lie(change, work) {
      changeIdToken = change;
      try {
        return await work();
      } finally {
        changeIdToken = undefined;
      }
    },
    async takeCodesTwice(work) {
      const { prototype } = provider.AuthorizationCode;
      const { consume } = prototype;
      prototype.consume = async () => {};
      try {
        return await work();
      } finally {
        prototype.consume = consume;
      }
    },
    async holdUserInfo(work) {
      const events = new EventEmitter();
      const released = once(events, 'released');
      const asked = once(events, 'asked');
      beforeUserInfo = () => {
        events.emit('asked');
        return released;
      };
      try {
        return await work(asked);
      } finally {
        beforeUserInfo = undefined;
        events.emit('released');
      }
    },
    accessToken: subject => issueAccessToken(issuer, subject),
    change: (token, claims, by = 'provider') =>
      sign({ ...decodeJwt(token), ...claims }, 'at+jwt', by === 'provider' ? keys : foreign),
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  provider.use(async (context, next) => {
    if (context.path === '/me') await beforeUserInfo?.();
    await next();
    const body = context.body as { id_token?: string } | undefined;
    if (context.oidc?.route !== 'token' || !body?.id_token || !changeIdToken) return;
    body.id_token = await sign(changeIdToken(decodeJwt(body.id_token)), 'JWT');
  });
  const answer = provider.callback();
  server.on('request', (req, res) => {
    if (!req.url?.startsWith('/interaction/')) return void answer(req, res);
    const who = /(?:^|; )who=([^;]+)/.exec(req.headers.cookie ?? '')?.[1] ?? '';
    const result = users.has(who)
      ? { login: { accountId: who } }
      : { error: 'access_denied', error_description: 'nobody of that name' };
    void provider.interactionFinished(req, res, result);
  });
  return test;
}

/** The access token that the program gets when this subject logs in there. */
async function issueAccessToken(issuer: string, subject: string): Promise<string> {
  const configuration = await client.discovery(
    new URL(issuer),
    PROGRAM.id,
    undefined,
    client.None(),
    { execute: [client.allowInsecureRequests] },
  );
  const pkceCodeVerifier = client.randomPKCECodeVerifier();
  const url = client.buildAuthorizationUrl(configuration, {
    redirect_uri: PROGRAM.callback,
    scope: 'api',
    resource: AUDIENCE,
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
  });
  const browser = new RedirectBrowser();
  browser.setCookie(issuer, `who=${subject}`);
  const back = await browser.follow(url.href, PROGRAM.callback);
  const tokens = await client.authorizationCodeGrant(
    configuration,
    new URL(back.url),
    { pkceCodeVerifier },
    { resource: AUDIENCE },
  );
  return tokens.access_token;
}
