import { randomFillSync } from 'node:crypto';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
/** Random bytes for 256 ids at a time: the call costs more than the bytes. */
const POOL = Buffer.alloc(16 * 256);
let used = POOL.length;

/**
 * A new identifier: a ULID in lower case, 26 characters for 48 bits of milliseconds, so that ids sort by time, and 80
 * random bits. BullMQ refuses integers and colons as ids. The package ulid makes upper case.
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

/** Whether newId() can have made it; other values need no look-up in the database. */
export function isId(value: string): boolean {
  return /^[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(value);
}
