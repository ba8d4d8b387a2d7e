import type { Request } from 'express';
import { invalidInput } from './validate.ts';

/** The request's Idempotency-Key; throws `invalid_input` for what is none. */
export function parseIdempotencyKey(req: Request): string | undefined {
  const key = req.get('Idempotency-Key');
  // A GET is idempotent by itself, and depends on more than its address: on Range, for one.
  if (key === undefined || req.method === 'GET' || req.method === 'HEAD') return undefined;
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw invalidInput(
      [{ field: 'Idempotency-Key', problem: 'must be 1 to 255 visible ASCII characters' }],
      'Make up a new key for each new request, such as a UUID.',
    );
  }
  return key;
}
