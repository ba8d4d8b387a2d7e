import type { Request } from 'express';

/** RFC 9110, 14.1.2: from `first` to `last`, both included, or the `suffix` last bytes. */
type RangeSpec = { first: number; last?: number } | { suffix: number };

/**
 * The single range of a GET. Undefined, so that all is sent, when there is none, a malformed one or several (RFC 9110,
 * 14.2: a server may ignore the field).
 */
export function readRange(req: Request): RangeSpec | undefined {
  if (req.method !== 'GET') return undefined;
  const match = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(req.get('Range') ?? '');
  const [, first = '', last = ''] = match ?? [];
  if (first === '') return last === '' ? undefined : { suffix: readOffset(last) };
  if (last === '') return { first: readOffset(first) };
  if (readOffset(last) < readOffset(first)) return undefined;
  return { first: readOffset(first), last: readOffset(last) };
}

/** No file is larger than a safe integer. */
const readOffset = (digits: string) => Math.min(Number(digits), Number.MAX_SAFE_INTEGER);
