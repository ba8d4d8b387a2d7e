import type { Request } from 'express';
import { WindlassError } from '../../shared/errors/errors.ts';

/** Refuses a body that is not the bytes to be stored, all of them. */
export function refuseOtherContent(req: Request): void {
  refuseEncoding(req);
  // RFC 9110, 14.5: a server that does not know partial PUT must not take the part for the whole.
  if (req.get('Content-Range') === undefined) return;
  throw new WindlassError('bad_request', {
    detail: 'Content-Range is not supported.',
    hint: 'Send all bytes, without Content-Range.',
  });
}

export function refuseEncoding(req: Request): void {
  const coding = req.get('Content-Encoding') ?? 'identity';
  if (coding.toLowerCase() === 'identity') return;
  throw new WindlassError('unsupported_media_type', {
    detail: `Content-Encoding ${coding} is not supported.`,
    hint: 'Send the bytes as they are to be stored, without Content-Encoding.',
  });
}
