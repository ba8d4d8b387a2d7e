import { WindlassError } from '../../shared/errors/errors.ts';

/** Bytes of a body that must arrive, or be read, in each window of LIMIT_BODY_SECONDS, unless it ends. */
export const MIN_WINDOW_BYTES = 64 << 10;

export function bodyTooSlow(windowMs: number): WindlassError {
  const seconds = windowMs / 1_000;
  return new WindlassError('request_timeout', {
    detail: `less than ${MIN_WINDOW_BYTES >> 10} KiB of the body arrived in ${seconds} seconds.`,
    hint: `Send the request again, faster. LIMIT_BODY_SECONDS (${seconds}) sets the limit.`,
  });
}
