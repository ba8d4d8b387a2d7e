import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { Exchange } from './exchange.ts';

/** Suffixes of tags after compression by a proxy: Apache's and, with two hyphens, Jetty's. */
const COMPRESSED = /--?(gzip|br|zstd)"$/;

/** A record's validator (RFC 9110, 8.8.3): its version, or a hash of its content. */
export function entityTag(of: string | number | object): string {
  const text =
    typeof of === 'object'
      ? createHash('sha256').update(JSON.stringify(of)).digest('base64url').slice(0, 22)
      : String(of);
  return `"${text}"`;
}

/** The validator of a record that can be deleted and created again under its name; `form` tells representations apart. */
export function versionTag({ version, created }: { version: number; created: Date }, form = '') {
  return entityTag(`${version}-${created.getTime().toString(36)}${form}`);
}

/**
 * Sets the ETag of the answer to GET, and answers 304 where If-None-Match has it (RFC 9110, 13.1.2). Whether it has answered.
 */
export function answerNotModified({ req, res }: Exchange, tag: string): boolean {
  res.set('ETag', tag).set('Cache-Control', 'private, no-cache');
  if (!matchesEntityTag(req.get('If-None-Match'), tag)) return false;
  res.status(304).end();
  return true;
}

/** Answers GET of a record with its ETag, or 304. */
export function sendRecord<Shape>(
  { req, res }: Exchange & { res: Response<Shape> },
  { tag, record }: { tag: string; record: () => NoInfer<Shape> },
): void {
  if (!answerNotModified({ req, res }, tag)) res.json(record());
}

/**
 * If-Match of a write (RFC 9110, 13.1.1). Throws `precondition_failed` when none of the given tags is one of
 * the record, which has changed then. `select` takes from a given tag what the write depends on.
 */
export function checkIfMatch(
  req: Request,
  tag: string | readonly string[],
  select = (tag: string) => tag,
): void {
  // A strong comparison: a weak tag never matches.
  const strong = req.get('If-Match')?.replace(/W\/"[^"]*"/g, '');
  if (strong === undefined || [tag].flat().some(each => matchesEntityTag(strong, each, select)))
    return;
  throw hasChanged();
}

/**
 * If-Unmodified-Since of what is sent with Last-Modified (RFC 9110, 13.1.4), whose dates have seconds. Passed over where
 * If-Match is given, or no date.
 */
export function checkIfUnmodifiedSince(req: Request, modified: Date): void {
  if (req.get('If-Match') !== undefined) return;
  const since = Date.parse(req.get('If-Unmodified-Since') ?? '');
  if (Math.floor(modified.getTime() / 1_000) * 1_000 > since) throw hasChanged();
}

const hasChanged = () =>
  new WindlassError('precondition_failed', {
    detail: 'the record has changed since.',
    hint: 'Get it again and repeat the change.',
  });

/** If-Match of a write to what is missing (RFC 9110, 13.1.1): no tag matches, nor does `*`. `what` it is, such as `part`. */
export function refuseIfMatch(req: Request, what: string): void {
  if (req.get('If-Match') === undefined) return;
  throw new WindlassError('precondition_failed', {
    detail: `there is no such ${what}.`,
    hint: 'Leave If-Match out to store it.',
  });
}

/**
 * If-None-Match of a write to a record that is there (RFC 9110, 13.1.2). Who sends `*` makes new ones only; nothing else
 * matches a record without a validator. `select` is that of checkIfMatch().
 */
export function checkIfNoneMatch(req: Request, tag = '""', select = (tag: string) => tag): void {
  if (!matchesEntityTag(req.get('If-None-Match'), tag, select)) return;
  throw new WindlassError('precondition_failed', {
    detail: 'there is such a record already.',
    hint: 'Choose another name, or leave If-None-Match out to replace it.',
  });
}

/** If-Match of a write to a record without a validator: `*` matches, a tag does not (RFC 9110, 13.1.1). */
export function refuseIfMatchTag(req: Request): void {
  const given = req.get('If-Match');
  if (given === undefined || given.trim() === '*') return;
  throw new WindlassError('precondition_failed', {
    detail: 'this record has no entity tag, so none matches.',
    hint: 'Omit If-Match, or send `*`.',
  });
}

/**
 * Whether a list of entity tags, or `*`, matches this one by weak comparison (RFC 9110, 8.8.3.2). A compressing proxy
 * may have changed the tag, as Apache appends `-gzip`. `select` is that of checkIfMatch().
 */
export function matchesEntityTag(
  header: string | undefined,
  tag: string,
  select = (given: string) => given,
): boolean {
  if (header === undefined) return false;
  if (header === tag) return true;
  return (
    header.trim() === '*' ||
    header.split(',').some(candidate => {
      const opaque = candidate.trim().replace(/^W\//, '');
      return [opaque, opaque.replace(COMPRESSED, '"')].some(given => select(given) === tag);
    })
  );
}
