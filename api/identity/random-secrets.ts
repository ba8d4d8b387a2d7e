import { createHash, randomBytes } from 'node:crypto';

/** 256 random bits, in 43 characters that need no escaping in a header, a cookie or an address. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** The stored form of a secret, useless for logging in. 256 random bits need no salt. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}

export function isSecret(text: string): boolean {
  return /^[\w-]{43}$/.test(text);
}
