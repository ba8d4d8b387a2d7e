import type { Request } from 'express';
import { invalidInput } from './validate.ts';

/** The request's Idempotency-Key. Throws `invalid_input` when it is malformed. */
export function parseIdempotencyKey(req: Request): string | undefined {
  const key = req.get('Idempotency-Key');
  // A GET is idempotent, and its answer depends on more than its address: on Range, for example.
  if (key === undefined || req.method === 'GET' || req.method === 'HEAD') return undefined;
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw invalidInput(
      [{ field: 'Idempotency-Key', problem: 'must be 1 to 255 visible ASCII characters' }],
      'Make up a new key for each new request, such as a UUID.',
    );
  }
  return key;
}
