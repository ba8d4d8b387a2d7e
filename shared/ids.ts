import { randomBytes } from 'node:crypto';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/**
 * A new identifier: 26 characters, sortable by the time it was made (48 bits of milliseconds), then 80 random bits;
 * the layout of a ULID, in lower case. Never a plain integer and never with a colon, which BullMQ refuses.
 */
export function newId(now = Date.now()): string {
  let bits = (BigInt(now) << 80n) | BigInt(`0x${randomBytes(10).toString('hex')}`);
  let id = '';
  for (let i = 0; i < 26; i++) {
    id = ALPHABET.charAt(Number(bits & 31n)) + id;
    bits >>= 5n;
  }
  return id;
}

/** True for what newId can have made; anything else is unknown without asking the database. */
export function isId(value: string): boolean {
  return /^[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(value);
}
