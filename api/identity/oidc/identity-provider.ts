import * as client from 'openid-client';
import { forbidden, WindlassError } from '../../../shared/errors/errors.ts';
import { CachedAnswer } from './cached-answer.ts';
import type { Claims } from './claims.ts';
import type { LoginUnderWay } from './login-cookie.ts';
import {
  badToken,
  explainBadToken,
  explainCodeRefusal,
  explainUserInfoRefusal,
  providerUnavailable,
} from './provider-errors.ts';
import { fetchFromProvider } from './provider-fetch.ts';
import { ProviderKeys } from './provider-keys.ts';
import { requireMetadata } from './provider-metadata.ts';

/** Clocks may differ by so much. */
export const CLOCK_SECONDS = 60;
const TIMEOUT_SECONDS = 10;
/** Age of the metadata at which it is read again: endpoints that the provider has moved are used from then on. */
const METADATA_MS = 3_600_000;
/** Signatures alone: with an HMAC whoever verifies could also sign (RFC 8725, 3.2). */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

export interface ProviderSettings {
  issuer: string;
  clientId: string;
  clientSecret: string | undefined;
  scopes: string;
  /** The audience of access tokens that are accepted; undefined: none are. */
  audience: string | undefined;
  /** The callback. */
  redirectUri: string;
}

/** Who somebody is: OpenID Connect Core 1.0, 2. */
export interface Subject {
  issuer: string;
  subject: string;
  claims: Claims;
}

/** The identity provider, which is asked when it is first needed: the service starts and goes on without it. */
export class IdentityProvider {
  readonly #settings: ProviderSettings;
  readonly #configuration = new CachedAnswer(() => this.#discover());
  readonly #keys = new ProviderKeys({
    find: async () => (await this.#configure()).serverMetadata().jwks_uri ?? '',
    timeoutMs: TIMEOUT_SECONDS * 1_000,
  });

  constructor(settings: ProviderSettings) {
    this.#settings = settings;
  }

  /** Where the browser goes to log in (OpenID Connect Core 1.0, 3.1.2.1). */
  async beginLogin(login: LoginUnderWay): Promise<URL> {
    const configuration = await this.#configure();
    return client.buildAuthorizationUrl(configuration, {
      redirect_uri: this.#settings.redirectUri,
      scope: this.#settings.scopes,
      state: login.state,
      nonce: login.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(login.verifier),
      code_challenge_method: 'S256',
    });
  }

  /**
   * Who logged in. `search` is the query that the provider sent the browser back with; the library checks state, issuer,
   * code, nonce, audience, signature and times.
   */
  async finishLogin(search: string, login: LoginUnderWay): Promise<Subject> {
    const configuration = await this.#configure();
    const tokens = await client
      .authorizationCodeGrant(configuration, new URL(`${this.#settings.redirectUri}${search}`), {
        expectedState: login.state,
        expectedNonce: login.nonce,
        pkceCodeVerifier: login.verifier,
        idTokenExpected: true,
      })
      .catch(explainCodeRefusal);
    const identity = tokens.claims();
    if (!identity) throw new Error('the library lets no answer without an ID token pass');
    if (!isSubject(identity.sub))
      throw forbidden(
        'the identity provider names nobody.',
        'Ask an administrator of the identity provider: `sub` must have 1 to 255 characters.',
      );
    const { issuer, userinfo_endpoint } = configuration.serverMetadata();
    // Core 1.0, 5.4: where there is an access token, the claims of scopes come from UserInfo.
    const more = userinfo_endpoint
      ? await client
          .fetchUserInfo(configuration, tokens.access_token, identity.sub)
          .catch(explainUserInfoRefusal)
      : {};
    return { issuer, subject: identity.sub, claims: { ...more, ...identity } };
  }

  /** Whose access token this is (RFC 9068, 4). Throws `unauthorized` when it is not valid here. */
  async verifyAccessToken(token: string): Promise<Subject> {
    const { audience } = this.#settings;
    if (audience === undefined)
      throw new WindlassError('unauthorized', {
        detail: 'this service takes no access tokens of its identity provider.',
        hint: 'Use an API token. OIDC_AUDIENCE would allow it.',
      });
    const { issuer } = (await this.#configure()).serverMetadata();
    const { payload, protectedHeader } = await this.#keys
      .verify(token, {
        issuer,
        audience,
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_SECONDS,
        requiredClaims: ['exp', 'sub'],
      })
      .catch(explainBadToken);
    if (!isAccessToken(protectedHeader, payload)) throw badToken('is for another purpose');
    // Nobody has verified its type.
    const subject: unknown = payload.sub;
    if (!isSubject(subject)) throw badToken('has the wrong `sub` for this service');
    return { issuer, subject, claims: payload };
  }

  #configure(): Promise<client.Configuration> {
    return this.#configuration.get(METADATA_MS);
  }

  async #discover(): Promise<client.Configuration> {
    const { issuer, clientId, clientSecret } = this.#settings;
    const isLocal = new URL(issuer).protocol === 'http:';
    try {
      const configuration = await client.discovery(
        new URL(issuer),
        clientId,
        { [client.clockTolerance]: CLOCK_SECONDS },
        // The default of Dynamic Client Registration 1.0, 2.
        clientSecret === undefined ? client.None() : client.ClientSecretBasic(clientSecret),
        {
          timeout: TIMEOUT_SECONDS,
          [client.customFetch]: fetchFromProvider,
          execute: [
            client.enableNonRepudiationChecks,
            ...(isLocal ? [client.allowInsecureRequests] : []),
          ],
        },
      );
      requireMetadata(configuration.serverMetadata(), issuer);
      return configuration;
    } catch (error) {
      throw providerUnavailable(error);
    }
  }
}

/** Core 1.0, 2. PostgreSQL stores no NUL, and all lone surrogates would be stored as the same character. */
const isSubject = (text: unknown): text is string =>
  typeof text === 'string' && /^[^\p{Cc}\p{Cs}]{1,255}$/u.test(text);

/** RFC 9068, 4, as far as providers agree: `at_hash` marks ID tokens, `events` logout tokens. */
const isAccessToken = ({ typ }: { typ?: string }, claims: Claims) =>
  [undefined, 'jwt', 'at+jwt', 'application/at+jwt'].includes(typ?.toLowerCase()) &&
  claims.at_hash === undefined &&
  claims.events === undefined;
