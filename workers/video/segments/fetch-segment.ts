import { rm } from 'node:fs/promises';
import type { ObjectStore } from '../../../shared/storage/object-store.ts';
import { OBJECT_STORE, retry } from '../../engine/retry.ts';
import { writeScratch } from '../../sandbox/scratch-dir.ts';

interface FetchOptions {
  /** The key of what another worker encoded. */
  object: string;
  /** A path in the scratch directory. */
  path: string;
  keepFree: number;
  signal: AbortSignal;
}

/** Copies a segment from the object store; starts over if that becomes unreachable meanwhile. */
export async function fetchSegment(
  objects: ObjectStore,
  { object, path, keepFree, signal }: FetchOptions,
): Promise<void> {
  const copy = async () => {
    await rm(path, { force: true });
    const bytes = await objects.get(object, { signal });
    await writeScratch(path, bytes, { signal, keepFree });
  };
  await retry(copy, { ...OBJECT_STORE, signal });
}
