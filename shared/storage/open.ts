import { join } from 'node:path';
import type { Config } from '../config.ts';
import { FileStore } from './file-store.ts';
import type { ObjectStore } from './object-store.ts';
import { S3Store } from './s3-store.ts';

/** The store that the settings choose. */
export function openObjectStore(config: Config): ObjectStore {
  const { S3_ENDPOINT, S3_ACCESS_KEY, S3_SECRET_KEY, S3_REGION, S3_BUCKET, DATA_DIR } = config;
  if (!S3_ENDPOINT) return new FileStore(join(DATA_DIR ?? 'data', 'objects'));
  return new S3Store({
    endpoint: S3_ENDPOINT,
    region: S3_REGION,
    bucket: S3_BUCKET,
    accessKey: S3_ACCESS_KEY ?? '',
    secretKey: S3_SECRET_KEY ?? '',
  });
}
