import type { Request } from 'express';

/** RFC 9110, 14.1.2: from `first` to `last`, both included, or the `suffix` last bytes. */
export type RangeSpec = { first: number; last?: number } | { suffix: number };

/**
 * The one range of the request. Undefined, so the whole is sent, where there is none, where it is malformed or asks for
 * several (14.2: a server may ignore the field), and for other methods than GET.
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

/** No file reaches what is beyond a safe integer. */
const readOffset = (digits: string) => Math.min(Number(digits), Number.MAX_SAFE_INTEGER);
