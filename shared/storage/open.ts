import { join } from 'node:path';
import type { Config } from '../config.ts';
import { FileStore } from './file-store.ts';
import type { ObjectStore } from './object-store.ts';

/** The store that the settings choose. */
export function openObjectStore(config: Config): ObjectStore {
  return new FileStore(join(config.DATA_DIR ?? 'data', 'objects'));
}
