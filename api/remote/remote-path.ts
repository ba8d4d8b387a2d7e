import type { Request } from 'express';
import { z } from 'zod';
import { WindlassError } from '../../shared/errors/errors.ts';
import { absolutePath } from '../../shared/jobs/payloads/absolute-path.ts';
import { addressOf } from '../http/request-link.ts';
import { parseInput } from '../http/validate.ts';

/**
 * The path on the host that follows `/remotes/(sid)/(operation)/`: absolute; its first slash may be omitted. Read from the
 * raw URL, so that an escaped slash counts as a slash.
 */
export function remotePath(req: Request, operation: string): string {
  const [, rest = ''] = new RegExp(`/${operation}/?(.*)$`, 'is').exec(addressOf(req).path) ?? [];
  let path: string;
  try {
    path = decodeURIComponent(rest);
  } catch {
    throw new WindlassError('bad_request', {
      detail: 'the path cannot be decoded.',
      hint: 'Escape it as UTF-8 per RFC 3986.',
    });
  }
  const whole = path.startsWith('/') ? path : `/${path}`;
  return parseInput({ path: whole }, z.object({ path: absolutePath })).path;
}
