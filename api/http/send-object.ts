import { pipeline } from 'node:stream/promises';
import type { Request, Response } from 'express';
import { WindlassError } from '../../shared/errors/errors.ts';
import {
  type ByteRange,
  MissingObject,
  type StoredObject,
} from '../../shared/storage/object-store.ts';
import type { ApiContext } from '../context.ts';
import { attachment } from './attachment.ts';
import { readRange } from './byte-range.ts';
import {
  checkIfMatch,
  checkIfUnmodifiedSince,
  entityTag,
  matchesEntityTag,
} from './conditional-requests.ts';
import type { Exchange } from './exchange.ts';
import { SEND_BUFFER_BYTES } from './send-buffers.ts';
import { whileClientStays } from './while-client-stays.ts';

interface SentObject {
  key: string;
  type: string;
  /** Browsers save it under this name. */
  download?: string;
}

/**
 * Sends an object or one range of it: RFC 9110, sections 13 (conditions) and 14 (ranges). An object never changes under
 * its key, so the key is its validator.
 */
export async function sendObject(
  api: Pick<ApiContext, 'objects' | 'sendBuffers'>,
  { req, res }: Exchange,
  { key, type, download, mayRedirect = false }: SentObject & { mayRedirect?: boolean },
): Promise<void> {
  const object = await api.objects.stat(key);
  if (!object)
    throw new MissingObject({
      detail: 'The bytes are no longer kept.',
      hint: "A job's result is kept for 24 hours; an object in a project may have been replaced just now: ask again.",
    });
  const headers = {
    ETag: entityTag({ key }),
    'Accept-Ranges': 'bytes',
    'Last-Modified': object.modified.toUTCString(),
    'Cache-Control': 'private, no-cache',
    'Content-Type': type,
    'X-Content-Type-Options': 'nosniff',
    ...(download !== undefined && { 'Content-Disposition': attachment(download) }),
  };
  const asked = evaluate(req, key, object);
  if (asked === 'unchanged') return void res.set(headers).status(304).end();
  const { range } = asked;
  if (mayRedirect && mayFollow(req, tagsOf(key, object))) {
    const disposition = headers['Content-Disposition'] ?? 'inline';
    const told = { type, disposition, seconds: ADDRESS_SECONDS };
    const address = await api.objects.addressOf?.(key, told);
    if (address) return res.set('Cache-Control', 'no-store').redirect(302, address);
  }
  const place = { key, start: range?.start ?? 0, end: range?.end ?? object.size - 1 };
  await whileClientStays(res, async signal => {
    // Before the headers are set: an error answer must not have those of the object.
    const bytes =
      req.method === 'HEAD'
        ? undefined
        : ((await readAtOnce(api, res, place)) ?? (await api.objects.get(key, { range, signal })));
    res.set(headers).set('Content-Length', String(place.end - place.start + 1));
    if (range)
      res.status(206).set('Content-Range', `bytes ${range.start}-${range.end}/${object.size}`);
    if (!bytes || Buffer.isBuffer(bytes)) return void res.end(bytes);
    await pipeline(bytes, res);
  });
}

/**
 * What the conditions and Range of a GET ask for, in the order of RFC 9110, 13.2.2. Throws `precondition_failed` and
 * `range_not_satisfiable`.
 */
function evaluate(
  req: Request,
  key: string,
  object: StoredObject,
): 'unchanged' | { range: ByteRange | undefined } {
  const { size, modified } = object;
  const tags = tagsOf(key, object);
  checkIfMatch(req, tags);
  checkIfUnmodifiedSince(req, modified);
  if (isNotModified(req, { tag: entityTag({ key }), modified })) return 'unchanged';
  const range = placeRange(req, { size, tags });
  if (range === 'unsatisfiable') {
    throw new WindlassError('range_not_satisfiable', {
      detail: `there are ${size} bytes.`,
      hint: `Ask for bytes 0 to ${size - 1}.`,
      headers: { 'Content-Range': `bytes */${size}` },
    });
  }
  return { range };
}

/** The pieces that players ask for: a stream of one would take most of the processor time of its answer. */
async function readAtOnce(
  { objects, sendBuffers }: Pick<ApiContext, 'objects' | 'sendBuffers'>,
  res: Response,
  { key, start, end }: ByteRange & { key: string },
): Promise<Buffer | undefined> {
  const length = end - start + 1;
  if (!objects.read || length > SEND_BUFFER_BYTES) return undefined;
  const into = sendBuffers.lend(res)?.subarray(0, length);
  if (into) await objects.read(key, into, start);
  return into;
}

/** An address is good for an hour, as a link is: players ask for ranges of it while a video plays. */
const ADDRESS_SECONDS = 3_600;

/**
 * Whether the store would understand the request as we do. An address is for GET alone, and the store does not know our
 * tags: it would refuse If-Match, and might send a range of another object than If-Range names. To If-Modified-Since it
 * would answer 304 for any later date, also that of another object.
 */
function mayFollow(req: Request, tags: string[]): boolean {
  const condition = req.get('If-Range');
  const isKnown = condition === undefined || tags.includes(condition);
  const isOurs = ['If-Match', 'If-Modified-Since', 'If-Unmodified-Since'].some(
    name => req.get(name) !== undefined,
  );
  return req.method === 'GET' && isKnown && !isOurs;
}

/** Our tag, and the store's own, which who follows an address gets. */
const tagsOf = (key: string, object: { tag?: string } | undefined): string[] =>
  [entityTag({ key }), object?.tag].filter(tag => tag !== undefined);

/** The conditions of a change to what sendObject() sends under this key. */
export async function checkObject(
  { objects }: Pick<ApiContext, 'objects'>,
  req: Request,
  key: string,
): Promise<void> {
  if (!['If-Match', 'If-Unmodified-Since'].some(name => req.get(name) !== undefined)) return;
  const object = await objects.stat(key);
  checkIfMatch(req, tagsOf(key, object));
  if (object) checkIfUnmodifiedSince(req, object.modified);
}

/** Throws where sendObject() would refuse this GET, for what is done before anything is sent. */
export async function checkGet(
  { objects }: Pick<ApiContext, 'objects'>,
  req: Request,
  key: string,
): Promise<void> {
  const mayBeRefused = ['If-Match', 'If-Unmodified-Since', 'Range'];
  if (!mayBeRefused.some(name => req.get(name) !== undefined)) return;
  const object = await objects.stat(key);
  // sendObject() answers 404 where there is none.
  if (object) evaluate(req, key, object);
}

/** Videos, which are sent by the store itself where VIDEO_DELIVERY says so. */
export function sendVideo(
  api: Pick<ApiContext, 'objects' | 'sendBuffers' | 'config'>,
  { req, res }: Exchange,
  object: SentObject,
): Promise<void> {
  const mayRedirect = api.config.VIDEO_DELIVERY === 'redirect';
  return sendObject(api, { req, res }, { ...object, mayRedirect });
}

/**
 * RFC 9110, 13.1.2 and 13.1.3: If-None-Match takes precedence. req.fresh would answer 200 to `Cache-Control: no-cache`,
 * which is for caches, and which a browser's fetch adds to every conditional request. A date must be equal: what takes the
 * place of a file may have been sent before it.
 */
function isNotModified(req: Request, { tag, modified }: { tag: string; modified: Date }): boolean {
  const tags = req.get('If-None-Match');
  if (tags !== undefined) return matchesEntityTag(tags, tag);
  const since = Date.parse(req.get('If-Modified-Since') ?? '');
  return Math.floor(modified.getTime() / 1_000) * 1_000 === since;
}

/** The requested range in bytes; undefined also when If-Range names another object. */
function placeRange(
  req: Request,
  { size, tags }: { size: number; tags: string[] },
): ByteRange | 'unsatisfiable' | undefined {
  const range = readRange(req);
  if (!range) return undefined;
  // 13.1.5: a strong comparison; a date is never an exact validator here.
  const condition = req.get('If-Range');
  if (condition !== undefined && !tags.includes(condition)) return undefined;
  if ('suffix' in range) {
    const length = Math.min(range.suffix, size);
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 };
  }
  if (range.first >= size) return 'unsatisfiable';
  return { start: range.first, end: Math.min(range.last ?? size, size - 1) };
}
