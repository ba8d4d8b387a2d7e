import { buffer } from 'node:stream/consumers';
import { ARRAY_TYPES, type ArrayType, parseNpyHeader } from '../../shared/arrays/npy-header.ts';
import type { ColumnStatistics } from '../../shared/database/schema.ts';
import type { ApiContext } from '../context.ts';
import type { Exchange } from '../http/exchange.ts';
import { findStoredArtifact, type StoredArtifact } from '../tables/find-artifact.ts';

export interface StoredArray {
  artifact: StoredArtifact;
  descr: ArrayType;
  shape: number[];
  /** Where its values begin. */
  offset: number;
  column: ColumnStatistics;
}

/** Our own headers, of at most 32 dimensions, are shorter. */
const HEAD_BYTES = 1_024;

/** The array that the path names: it is a NumPy file, which says its type and shape. Throws `not_found`. */
export const findArray = (api: ApiContext, { req, res }: Exchange): Promise<StoredArtifact> =>
  findStoredArtifact(api, { req, res, kind: 'array' });

export async function openArray(api: ApiContext, artifact: StoredArtifact): Promise<StoredArray> {
  const range = { start: 0, end: Math.min(HEAD_BYTES, artifact.size) - 1 };
  const head = await buffer(await api.objects.get(artifact.object, { range }));
  const { descr, shape, offset } = parseNpyHeader(head);
  const [column] = await api.columnCache.find(api.database.db, artifact);
  if (typeof descr !== 'string' || !(descr in ARRAY_TYPES) || !column)
    throw new Error(`array ${artifact.aid} of model ${artifact.model} is no array`);
  return { artifact, descr: descr as ArrayType, shape, offset, column };
}
