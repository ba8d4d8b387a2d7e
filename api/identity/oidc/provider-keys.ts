import {
  createLocalJWKSet,
  type JSONWebKeySet,
  type JWTVerifyOptions,
  type JWTVerifyResult,
  errors as jose,
  jwtVerify,
} from 'jose';
import { CachedAnswer } from './cached-answer.ts';
import { fetchFromProvider } from './provider-fetch.ts';

/** Longest time for which a key that the provider has withdrawn is accepted. */
const KEPT_MS = 600_000;
/** Shortest time between two requests for keys, whatever tokens come: a new key works after it at the latest. */
const RENEWED_MS = 30_000;

type KeySet = ReturnType<typeof createLocalJWKSet>;

/** The keys that a provider signs access tokens with: one set for all requests. */
export class ProviderKeys {
  readonly #keys: CachedAnswer<KeySet>;

  /** @param options.find the `jwks_uri`. */
  constructor(options: { find: () => Promise<string>; timeoutMs: number }) {
    this.#keys = new CachedAnswer(async () => readKeys(await options.find(), options.timeoutMs));
  }

  async verify(token: string, options: JWTVerifyOptions): Promise<JWTVerifyResult> {
    const keys = await this.#keys.get(KEPT_MS);
    try {
      return await jwtVerify(token, keys, options);
    } catch (error) {
      // Providers whose keys have no names, or the same ones, change a key in its place.
      const mayBeNew =
        error instanceof jose.JWKSNoMatchingKey ||
        error instanceof jose.JWSSignatureVerificationFailed;
      const renewed = mayBeNew ? await this.#keys.get(RENEWED_MS) : keys;
      if (renewed === keys) throw error;
      return jwtVerify(token, renewed, options);
    }
  }
}

async function readKeys(url: string, timeoutMs: number): Promise<KeySet> {
  const answer = await fetchFromProvider(url, {
    headers: { Accept: 'application/jwk-set+json, application/json' },
    redirect: 'manual',
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (answer.status !== 200) {
    await answer.body?.cancel();
    throw new Error(`${url} answers ${answer.status}`);
  }
  // The library checks what it is.
  return createLocalJWKSet((await answer.json()) as JSONWebKeySet);
}
