import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { S3Store } from '../../../shared/storage/s3-store.ts';
import { makeTempDir } from '../../../test/harness/files/temp-dir.ts';
import { missingMinio, startMinio } from '../../../test/harness/servers/minio.ts';
import { startTcpProxy } from '../../../test/harness/servers/tcp-proxy.ts';
import { describeUnless } from '../../../test/harness/skip.ts';
import { fetchSegment } from './fetch-segment.ts';

describeUnless(missingMinio(), 'a segment in an object store', () => {
  test('is whole though the connection breaks while it is read', async () => {
    const minio = await startMinio();
    onTestFinished(() => minio.stop());
    const proxy = await startTcpProxy(minio);
    onTestFinished(() => proxy.stop());
    const directory = makeTempDir('segment');
    onTestFinished(() => directory.remove());
    const { accessKey, secretKey } = minio;
    const objects = new S3Store({
      endpoint: `http://${proxy.host}:${proxy.port}`,
      region: 'us-east-1',
      bucket: 'segments',
      accessKey,
      secretKey,
    });
    const segment = randomBytes(2 ** 22);
    await objects.put('videos/segment', segment);
    proxy.cutAfter('down', 2 ** 21);
    const { total } = proxy.connections;
    const path = join(directory.path, 'segment');
    const { signal } = new AbortController();
    await fetchSegment(objects, { object: 'videos/segment', path, keepFree: 0, signal });
    expect(proxy.connections.total).toBeGreaterThan(total);
    expect(readFileSync(path).equals(segment)).toBe(true);
  });
});
