import { join } from 'node:path';
import type { Config } from '../settings/config.ts';
import { FileStore } from './file-store.ts';
import type { ObjectStore } from './object-store.ts';
import { isSharedFolder } from './shared-folder.ts';

/** Opens the store that the settings choose. Loads the S3 client only where it is used: it takes a quarter of the start-up time. */
export async function openObjectStore(config: Config): Promise<ObjectStore> {
  const { S3_ENDPOINT, S3_ACCESS_KEY, S3_SECRET_KEY, S3_REGION, S3_BUCKET, DATA_DIR } = config;
  if (!S3_ENDPOINT) {
    const root = join(DATA_DIR ?? 'data', 'objects');
    // A folder that is made must be writable for the group at once: another process may put something into it.
    if (isSharedFolder(root)) process.umask(0o007);
    return new FileStore(root, { keepFree: config.LIMIT_FREE_BYTES });
  }
  const { S3Store } = await import('./s3-store.ts');
  return new S3Store({
    endpoint: S3_ENDPOINT,
    publicEndpoint: config.S3_PUBLIC_ENDPOINT,
    region: S3_REGION,
    bucket: S3_BUCKET,
    accessKey: S3_ACCESS_KEY ?? '',
    secretKey: S3_SECRET_KEY ?? '',
  });
}
