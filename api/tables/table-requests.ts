import type { Request, Response } from 'express';
import { z } from 'zod';
import type { ApiContext } from '../context.ts';
import { entityTag, matchesEntityTag } from '../http/conditional-requests.ts';
import { currentUser } from '../identity/current-user.ts';
import { findStoredArtifact, type StoredArtifact } from './find-artifact.ts';
import type { ReadRequest } from './table-reader.ts';
import type { ExportFormat } from './thread-protocol.ts';

/** A value as JSON has it. */
export const cellValue = z.union([z.string(), z.number(), z.boolean(), z.null()]);

export const TABLE_PATH = '/models/:mid/tables/:aid';

/** The table that the path names. Throws `not_found`. */
export const findTable = (api: ApiContext, req: Request, res: Response): Promise<StoredArtifact> =>
  findStoredArtifact(api, { req, res, kind: 'table' });

/** For whom the reader reads. */
export const readFor = (api: ApiContext, res: Response): ReadRequest => ({
  user: currentUser(res).username,
  hasLeft: () => res.closed || res.destroyed,
  reserveMemory: bytes => api.memory.reserve(res, bytes),
});

/** The table's validator, of the answer in this form (RFC 9110, 8.8.3). */
export const tagOf = (table: StoredArtifact, format: 'json' | ExportFormat): string =>
  format === 'json' ? table.tag : entityTag({ key: table.object, format });

/** All responses about a table depend on its bytes alone: 304 is answered before any are read. */
export function isUnchanged(
  req: Request,
  res: Response,
  table: StoredArtifact,
  format: 'json' | ExportFormat = 'json',
): boolean {
  const tag = tagOf(table, format);
  res.set('ETag', tag).set('Cache-Control', 'private, no-cache');
  if (!matchesEntityTag(req.get('If-None-Match'), tag)) return false;
  res.status(304).end();
  return true;
}

/** JSON in pieces, some of which are large. */
export function sendParts(res: Response, parts: (string | Buffer)[]): void {
  const bytes = Buffer.concat(
    parts.map(part => (typeof part === 'string' ? Buffer.from(part) : part)),
  );
  res.type('application/json').send(bytes);
}
