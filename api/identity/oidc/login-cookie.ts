import { createHash, hkdfSync } from 'node:crypto';
import type { CookieOptions, Request, Response } from 'express';
import { EncryptJWT, jwtDecrypt } from 'jose';
import { z } from 'zod';

/** A login at the provider takes so long at most. */
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
 * Keeps a login under way in an encrypted cookie of the browser that began it: the provider's answer is accepted from that
 * browser alone, so nobody can log another one in as himself (RFC 9700, 4.7). Nothing is stored here before somebody has
 * logged in, so that nobody can fill the database. Each login has its cookie: tabs do not disturb each other.
 */
export class LoginCookie {
  readonly #key: Uint8Array;
  readonly #options: CookieOptions;

  /** @param options.path of the callback: no other request carries the cookie. */
  constructor(secretKey: string, options: { path: string; secure: boolean }) {
    this.#key = new Uint8Array(hkdfSync('sha256', secretKey, '', 'windlass oidc login', 32));
    // Lax: the provider's redirect is a navigation from another site.
    this.#options = { ...options, httpOnly: true, sameSite: 'lax', encode: String };
  }

  async set(res: Response, login: LoginUnderWay): Promise<void> {
    const text = await new EncryptJWT({ ...login })
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
      .setExpirationTime(`${LOGIN_SECONDS}s`)
      .encrypt(this.#key);
    res.cookie(nameFor(login.state), text, { ...this.#options, maxAge: LOGIN_SECONDS * 1_000 });
  }

  /** The login of this state that the browser began, or undefined: none, another one's, or too long ago. */
  async read(req: Request, state: string): Promise<LoginUnderWay | undefined> {
    const pattern = new RegExp(`(?:^|;) *${nameFor(state)}=([\\w.-]+)`);
    const text = pattern.exec(req.get('Cookie') ?? '')?.[1];
    if (!text) return undefined;
    const opened = await jwtDecrypt(text, this.#key).catch(() => undefined);
    const login = loginUnderWay.safeParse(opened?.payload).data;
    return login?.state === state ? login : undefined;
  }

  clear(res: Response, state: string): void {
    res.clearCookie(nameFor(state), this.#options);
  }
}

const nameFor = (state: string) =>
  `serviceoidc_${createHash('sha256').update(state).digest('hex').slice(0, 16)}`;
