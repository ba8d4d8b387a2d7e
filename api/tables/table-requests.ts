import { sql } from 'drizzle-orm';
import type { Response } from 'express';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { artifacts, views } from '../../shared/database/schema.ts';
import type { ApiContext } from '../context.ts';
import { answerNotModified, entityTag } from '../http/conditional-requests.ts';
import type { Exchange } from '../http/exchange.ts';
import { shareOf } from '../identity/current-user.ts';
import { BRIEF_MS, identifyAfterWait } from '../identity/identify-sender.ts';
import { findModel, needRole } from '../projects/access.ts';
import { findStoredArtifact, type StoredArtifact } from './find-artifact.ts';
import type { ReadRequest } from './table-reader.ts';
import type { ExportFormat, TableFile, TableTask } from './thread-protocol.ts';

/** A value as JSON has it. */
export const cellValue = z.union([z.string(), z.number(), z.boolean(), z.null()]);

export const TABLE_PATH = '/models/:mid/tables/:aid';

/** The table that the path names. Throws `not_found`. */
export const findTable = (api: ApiContext, { req, res }: Exchange): Promise<StoredArtifact> =>
  findStoredArtifact(api, { req, res, kind: 'table' });

/** Like findTable(), with its columns. */
export async function openTable(api: ApiContext, { req, res }: Exchange) {
  const table = await findTable(api, { req, res });
  return { table, columns: await api.columnCache.find(api.database.db, table) };
}

/** What the reader of this table must know of the request. */
export function readFor(
  api: ApiContext,
  { req, res }: Exchange,
  { model }: Pick<StoredArtifact, 'model'>,
): ReadRequest {
  const began = performance.now();
  return {
    user: shareOf(res),
    hasLeft: () => res.closed || res.destroyed,
    reserveMemory: bytes => api.requestMemory.reserveIfLarge(res, bytes),
    confirm: async () => {
      if (performance.now() - began < BRIEF_MS) return;
      await identifyAfterWait(api, { req, res });
      await findModel(api.database.db, model, needRole(res, 'reader'));
    },
    isNamed: key => isNamed(api, key),
  };
}

async function isNamed({ database: { db } }: ApiContext, key: string): Promise<boolean> {
  const [row] = await db.execute<{ named: boolean }>(sql`
    select exists (select from ${artifacts} where ${artifacts.object} = ${key})
      or exists (select from ${views} where ${views.object} = ${key}) as named`);
  return row?.named === true;
}

/** The entity tag of an answer about the table in this format (RFC 9110, 8.8.3). */
export const tagOf = (table: StoredArtifact, format: 'json' | ExportFormat): string =>
  format === 'json' ? table.tag : entityTag({ key: table.object, format });

/** All responses about a table depend on its bytes alone: 304 is answered before any are read. */
export function isUnchanged(
  { req, res }: Exchange,
  table: StoredArtifact,
  format: 'json' | ExportFormat = 'json',
): boolean {
  return answerNotModified({ req, res }, tagOf(table, format));
}

/** Reads the results of a file's tasks through a cache of `maxSize` bytes. */
export function makeCachedReader(api: ApiContext, maxSize: number) {
  const sizeCalculation = (bytes: Buffer, key: string) => bytes.length + key.length;
  const answers = new LRUCache<string, Buffer>({ maxSize, sizeCalculation });
  return async (
    asked: Exchange & { table: StoredArtifact; file: TableFile },
    task: TableTask,
    ...which: unknown[]
  ) => {
    const { table, file } = asked;
    const key = JSON.stringify([file.key, ...which]);
    const reading = readFor(api, asked, table);
    const bytes = answers.get(key) ?? (await api.tableReader.read(file, task, reading)).bytes;
    answers.set(key, bytes);
    return bytes;
  };
}

/** Sends JSON in pieces, some of which are large. The caller ensures that together they are valid JSON. */
export function sendParts(res: Response, parts: (string | Buffer)[]): void {
  const pieces = parts.map(part => (typeof part === 'string' ? Buffer.from(part) : part));
  const [first, ...others] = pieces;
  const bytes = first && others.length === 0 ? first : Buffer.concat(pieces);
  res.type('application/json').send(bytes);
}
