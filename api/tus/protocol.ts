import type { Request } from 'express';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { Exchange } from '../http/exchange.ts';
import { invalidInput } from '../http/validate.ts';

/** https://tus.io/protocols/resumable-upload, version 1.0.0; the sentences that are quoted here are its own. */
export const TUS_VERSION = '1.0.0';
export const TUS_EXTENSIONS = [
  'creation',
  'creation-with-upload',
  'termination',
  'checksum',
  'expiration',
];
export const CHECKSUM_ALGORITHMS = ['sha1', 'sha256'] as const;
/** The media type of the bytes of an upload. */
export const OFFSET_STREAM = 'application/offset+octet-stream';

/**
 * tus 1.0.0, Tus-Resumable: it is in every request and answer but those of OPTIONS. Another version than ours is
 * answered 412 with Tus-Version.
 */
export function requireVersion({ req, res }: Exchange): void {
  res.set('Tus-Resumable', TUS_VERSION);
  if (req.get('Tus-Resumable') === TUS_VERSION) return;
  throw new WindlassError('precondition_failed', {
    detail: `Tus-Resumable must be ${TUS_VERSION}.`,
    hint: 'Send it with every request of this protocol.',
    headers: { 'Tus-Version': TUS_VERSION },
  });
}

/** Throws `invalid_input` for a header of an extension that TUS_EXTENSIONS lacks, instead of doing something else. */
export function refuseOtherExtensions(req: Request): void {
  const asked = ['Upload-Concat', 'Upload-Defer-Length'].filter(
    name => req.get(name) !== undefined,
  );
  if (asked.length === 0) return;
  throw invalidInput(
    asked.map(field => ({ field, problem: 'is of an extension that is not supported' })),
    'Send a file as one upload whose Upload-Length is known. OPTIONS names the extensions in Tus-Extension.',
  );
}

/** "All PATCH requests MUST use Content-Type: application/offset+octet-stream, otherwise the server SHOULD return 415." */
export function requireOffsetStream(req: Request): void {
  if (isOffsetStream(req)) return;
  throw new WindlassError('unsupported_media_type', {
    detail: `the bytes of an upload are ${OFFSET_STREAM}.`,
    hint: `Send Content-Type: ${OFFSET_STREAM}.`,
  });
}

export const isOffsetStream = (req: Request): boolean =>
  req.get('Content-Type')?.split(';')[0]?.trim().toLowerCase() === OFFSET_STREAM;

/** "The value MUST be a non-negative integer." */
export function readLength(req: Request, header: 'Upload-Length' | 'Upload-Offset'): number {
  const text = req.get(header);
  if (text !== undefined && /^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text)))
    return Number(text);
  throw invalidInput(
    [{ field: header, problem: 'must be a whole number of bytes' }],
    'Send the header as tus 1.0 defines it; a length that is not known yet is not supported.',
  );
}

/**
 * tus 1.0.0, Upload-Metadata: comma-separated pairs of key and value with a space between. Keys are unique; values are
 * base64.
 */
export function parseMetadata(header: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const pair of header.split(',').map(text => text.trim())) {
    if (pair === '') continue;
    const [, key = '', value = ''] = /^([^\s,]+)(?: +([A-Za-z0-9+/]*={0,2}))?$/.exec(pair) ?? [];
    if (key === '' || found.has(key))
      throw invalidInput(
        [{ field: 'Upload-Metadata', problem: 'must be unique keys, each with a value in Base64' }],
        'Write pairs as `key value`, separated by commas.',
      );
    found.set(key, Buffer.from(value, 'base64').toString('utf8'));
  }
  return found;
}

/** A digest that the bytes of one request must have. */
export interface Checksum {
  algorithm: (typeof CHECKSUM_ALGORITHMS)[number];
  digest: Buffer;
}

/** "The Upload-Checksum request header … MUST consist of the name of the used checksum algorithm and the Base64 encoded checksum separated by a space." */
export function readChecksum(req: Request): Checksum | undefined {
  const text = req.get('Upload-Checksum');
  if (text === undefined) return undefined;
  const [name, digest = ''] = text.split(' ');
  const algorithm = CHECKSUM_ALGORITHMS.find(known => known === name);
  // "The Server MUST respond with … 400 Bad Request if the checksum algorithm is not supported by the server."
  if (algorithm && digest !== '') return { algorithm, digest: Buffer.from(digest, 'base64') };
  throw invalidInput(
    [
      {
        field: 'Upload-Checksum',
        problem: `must be one of ${CHECKSUM_ALGORITHMS.join(', ')}, a space and the checksum in Base64`,
      },
    ],
    'OPTIONS names the algorithms in Tus-Checksum-Algorithm.',
  );
}
