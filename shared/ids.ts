import { randomFillSync } from 'node:crypto';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
/** Asked for many at a time: the call costs more than its bytes. */
const POOL = Buffer.alloc(16 * 256);
let used = POOL.length;

/**
 * A new identifier: 26 characters, sortable by the time it was made (48 bits of milliseconds), then 80 random bits;
 * the layout of a ULID, in lower case. Never a plain integer and never with a colon, which BullMQ refuses.
 */
export function newId(now = Date.now()): string {
  let time = '';
  for (let rest = now, i = 0; i < 10; i++, rest = Math.floor(rest / 32))
    time = ALPHABET.charAt(rest % 32) + time;
  if (used === POOL.length) {
    randomFillSync(POOL);
    used = 0;
  }
  let random = '';
  for (const end = used + 16; used < end; used++) random += ALPHABET.charAt((POOL[used] ?? 0) & 31);
  return time + random;
}

/** True for what newId can have made; anything else is unknown without asking the database. */
export function isId(value: string): boolean {
  return /^[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(value);
}
