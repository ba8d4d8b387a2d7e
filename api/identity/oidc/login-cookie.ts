import { createHash, hkdfSync } from 'node:crypto';
import type { CookieOptions, Request, Response } from 'express';
import { EncryptJWT, jwtDecrypt } from 'jose';
import { z } from 'zod';
import type { SecretKeys } from '../secret-keys.ts';

/** Longest time that a login at the provider may take. */
export const LOGIN_SECONDS = 600;

const loginUnderWay = z.object({
  state: z.string(),
  nonce: z.string(),
  /** PKCE's secret (RFC 7636): a stolen code is worth nothing without it. */
  verifier: z.string(),
  target: z.string(),
});
export type LoginUnderWay = z.output<typeof loginUnderWay>;

/**
 * An encrypted cookie for each login under way, so that tabs do not disturb each other. Only the browser that began a
 * login can finish it (login CSRF: RFC 9700, 4.7), and nothing is stored before, so that nobody fills the database.
 */
export class LoginCookie {
  readonly #keys: SecretKeys;
  readonly #options: CookieOptions;

  /**
   * @param keys may be renewed: what was begun under the one before is finished.
   * @param options.path of the callback: no other request carries the cookie.
   */
  constructor(keys: SecretKeys, options: { path: string; secure: boolean }) {
    this.#keys = keys;
    // Lax: the provider's redirect is a navigation from another site.
    this.#options = { ...options, httpOnly: true, sameSite: 'lax', encode: String };
  }

  async set(res: Response, login: LoginUnderWay): Promise<void> {
    const text = await new EncryptJWT({ ...login })
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
      .setExpirationTime(`${LOGIN_SECONDS}s`)
      .encrypt(deriveKey(this.#keys.SECRET_KEY));
    res.cookie(nameFor(login.state), text, { ...this.#options, maxAge: LOGIN_SECONDS * 1_000 });
  }

  /**
   * The login of this state that the browser began; undefined where there is none, it is another browser's, or it began
   * too long ago.
   */
  async read(req: Request, state: string): Promise<LoginUnderWay | undefined> {
    const pattern = new RegExp(`(?:^|;) *${nameFor(state)}=([\\w.-]+)`);
    const text = pattern.exec(req.get('Cookie') ?? '')?.[1];
    if (!text) return undefined;
    const { SECRET_KEY, SECRET_KEY_BEFORE } = this.#keys;
    for (const key of [SECRET_KEY, ...(SECRET_KEY_BEFORE ? [SECRET_KEY_BEFORE] : [])]) {
      const opened = await jwtDecrypt(text, deriveKey(key)).catch(() => undefined);
      const login = loginUnderWay.safeParse(opened?.payload).data;
      if (login?.state === state) return login;
    }
    return undefined;
  }

  clear(res: Response, state: string): void {
    res.clearCookie(nameFor(state), this.#options);
  }
}

const deriveKey = (secretKey: string) =>
  new Uint8Array(hkdfSync('sha256', secretKey, '', 'windlass oidc login', 32));

const nameFor = (state: string) =>
  `serviceoidc_${createHash('sha256').update(state).digest('hex').slice(0, 16)}`;
