import { expect, test } from 'vitest';
import { describeUnless } from '../skip.ts';
import { missingMinio, startMinio } from './minio.ts';

describeUnless(missingMinio(), 'a MinIO', () => {
  test('goes down and comes up again on its port and data', { timeout: 120_000 }, async () => {
    const minio = await startMinio();
    const isAlive = () =>
      fetch(`${minio.endpoint}/minio/health/live`).then(
        ({ ok }) => ok,
        () => false,
      );
    try {
      expect(await isAlive()).toBe(true);
      await minio.down();
      expect(await isAlive()).toBe(false);
      await minio.up();
      expect(await isAlive()).toBe(true);
    } finally {
      await minio.stop();
    }
    expect(await isAlive()).toBe(false);
  });
});
