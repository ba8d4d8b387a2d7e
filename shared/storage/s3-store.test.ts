import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { Client } from 'minio';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { describeObjectStore } from '../../test/harness/files/store-contract.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { missingMinio, startMinio, type TestMinio } from '../../test/harness/servers/minio.ts';
import { startTcpProxy } from '../../test/harness/servers/tcp-proxy.ts';
import { startTlsServer } from '../../test/harness/servers/tls-server.ts';
import { describeUnless, missingPrograms, missingRoot } from '../../test/harness/skip.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { S3Store } from './s3-store.ts';

const UNAVAILABLE = {
  code: 'unavailable',
  headers: { 'Retry-After': expect.stringMatching(/^\d+$/) },
};
const MIB = Buffer.alloc(1 << 20, 'x');

describeUnless(missingMinio(), 'objects on MinIO', () => {
  describeObjectStore('the contract', async () => {
    const minio = await startMinio();
    return { store: openStore(minio), close: () => minio.stop() };
  });

  describe('MinIO, running', () => {
    let minio: TestMinio;
    beforeAll(async () => {
      minio = await startMinio();
    });
    afterAll(() => minio?.stop());

    test('many processes that find the bucket missing create it together', async () => {
      const stores = Array.from({ length: 8 }, () => openStore(minio, { bucket: 'raced' }));
      await Promise.all(stores.map((store, i) => store.put(`raced/${i}`, Buffer.from('x'))));
      await Promise.all(stores.map(() => openStore(minio, { bucket: 'checked' }).check()));
      expect(await openClient(minio).bucketExists('checked')).toBe(true);
    });

    test('a bucket that is gone is an outage, and no object that is', async () => {
      const store = openStore(minio, { bucket: 'removed' });
      await store.put('a', Buffer.from('x'));
      expect(await store.stat('b')).toBeUndefined();
      await store.remove('a');
      await openClient(minio).removeBucket('removed');
      await expect(store.stat('a')).rejects.toMatchObject(UNAVAILABLE);
      await expect(store.get('a')).rejects.toMatchObject(UNAVAILABLE);
      await store.put('a', Buffer.from('x'));
      expect(await store.stat('a')).toMatchObject({ size: 1 });
    });

    test('refused credentials are an error of one line that names the settings', async () => {
      for (const wrong of [{ secretKey: 'wrong-secret' }, { accessKey: 'nobody' }]) {
        const store = openStore(minio, wrong);
        await expect(store.check()).rejects.toMatchObject(UNAVAILABLE);
        await expect(store.check()).rejects.toThrow(/^[^\n]*credentials[^\n]*S3_ACCESS_KEY[^\n]*$/);
        await expect(store.put('a', Buffer.from('x'))).rejects.toMatchObject(UNAVAILABLE);
      }
    });

    test('an address is good for who has it, for so long, at the name that clients know', async () => {
      const store = openStore(minio);
      await store.put('told/a', MIB);
      const given = { type: 'video/webm', disposition: 'inline', seconds: 60 };
      const address = await store.addressOf('told/a', given);
      const part = await fetch(address, { headers: { Range: 'bytes=10-19' } });
      expect([part.status, part.headers.get('Content-Type'), await part.text()]).toEqual([
        206,
        'video/webm',
        'x'.repeat(10),
      ]);
      expect(part.headers.get('ETag')).toBe((await store.stat('told/a'))?.tag);
      expect((await fetch(address.replace('told/a', 'told/b'))).status).toBe(403);
      const elsewhere = openStore(minio, { publicEndpoint: 'https://media.example' });
      const told = new URL(await elsewhere.addressOf('told/a', given));
      expect(told.origin).toBe('https://media.example');
      expect(told.searchParams.get('X-Amz-SignedHeaders')).toBe('host');
    });

    test('a put that fails in its third part leaves no multipart upload', async () => {
      const store = openStore(minio);
      const failing = function* () {
        for (let i = 0; i < 20; i++) yield MIB;
        throw new Error('the source broke');
      };
      const putting = store.put('broken/a', Readable.from(failing(), { objectMode: false }));
      await expect(putting).rejects.toThrow('the source broke');
      expect(await listUploads(minio, 'broken/a')).toEqual([]);
    });

    test('aborts old uploads of killed writers, and none that is being written', async () => {
      const store = openStore(minio);
      await store.check();
      await openClient(minio).initiateNewMultipartUpload('windlass', 'killed/a', {});
      await store.removeAbandonedWrites(new Date(Date.now() - 60_000));
      expect(await listUploads(minio, 'killed/a')).toHaveLength(1);
      await store.removeAbandonedWrites(new Date(Date.now() + 60_000));
      expect(await listUploads(minio, 'killed/a')).toEqual([]);
    });

    test('a reader that ends early frees the connection', async () => {
      const proxy = await startTcpProxy(minio);
      onTestFinished(() => proxy.stop());
      const store = openStore(minio, { endpoint: `http://127.0.0.1:${proxy.port}` });
      await store.put('left/a', Buffer.alloc(32 << 20));
      for (let i = 0; i < 3; i++) for await (const _ of await store.get('left/a')) break;
      const leave = new AbortController();
      const bytes = await store.get('left/a', { signal: leave.signal });
      leave.abort();
      await expect(buffer(bytes)).rejects.toThrow();
      // What is kept for the next call: the one of the put, and the one of the bucket's check.
      await waitFor(() => proxy.connections.open <= 2, { what: 'the connections to close' });
    });

    test('slow sources and slow readers do not time out', {
      timeout: 30_000,
    }, async () => {
      const store = openStore(minio, { stallMs: 2_000 });
      const slow = async function* () {
        yield MIB;
        // Longer than the server may be silent; nothing else can be waited for here.
        await new Promise(resolve => setTimeout(resolve, 3_000));
        yield MIB;
      };
      for (const size of [undefined, 2 << 20])
        expect(await store.put('slow/a', Readable.from(slow()), { size })).toBe(2 << 20);
      await store.put('slow/b', Buffer.alloc(32 << 20));
      let bytes = 0;
      for await (const piece of await store.get('slow/b')) {
        if (bytes === 0) await new Promise(resolve => setTimeout(resolve, 3_000));
        bytes += (piece as Buffer).length;
      }
      expect(bytes).toBe(32 << 20);
    });

    for (const size of [undefined, 100 << 20]) {
      const given = size === undefined ? 'unknown' : 'given';
      test(`a server that takes nothing ends a put of ${given} size, of which little was read`, async () => {
        const proxy = await startTcpProxy(minio);
        onTestFinished(() => proxy.stop());
        const store = openStore(minio, {
          endpoint: `http://127.0.0.1:${proxy.port}`,
          stallMs: 1_000,
        });
        await store.check();
        await store.put('warm/a', Buffer.from('x'));
        let asked = 0;
        const pieces = function* () {
          for (; asked < 100; asked++) yield MIB;
        };
        const source = Readable.from(pieces(), { objectMode: false });
        proxy.blackhole('up');
        await expect(store.put('hanging/a', source, { size })).rejects.toMatchObject(UNAVAILABLE);
        expect(source.destroyed).toBe(true);
        expect(asked).toBeLessThan(50);
        proxy.heal();
        expect(await store.stat('hanging/a')).toBeUndefined();
      });
    }
  });

  describe('MinIO, becoming unreachable and coming back', () => {
    let minio: TestMinio;
    beforeAll(async () => {
      minio = await startMinio();
    });
    afterAll(() => minio?.stop());

    const everything = (store: S3Store): [string, () => Promise<unknown>][] => [
      ['put', () => store.put('unreachable/a', Buffer.from('x'))],
      ['put a stream', () => store.put('unreachable/b', Readable.from([MIB]), { size: 1 << 20 })],
      ['put parts', () => store.put('unreachable/c', Readable.from(Array(20).fill(MIB)))],
      ['get', () => store.get('kept')],
      ['stat', () => store.stat('kept')],
      ['remove', () => store.remove('unreachable/a')],
      ['list', () => listAll(store)],
      ['removeAbandonedWrites', () => store.removeAbandonedWrites(new Date())],
      ['check', () => store.check()],
    ];

    test('down, stalled or disconnected, everything is unavailable; afterwards it works', {
      timeout: 60_000,
    }, async () => {
      const proxy = await startTcpProxy(minio);
      onTestFinished(() => proxy.stop());
      const endpoint = `http://127.0.0.1:${proxy.port}`;
      const open = () => openStore(minio, { endpoint, stallMs: 700 });
      const warm = open();
      await warm.put('kept', Buffer.from('kept'));
      const expectUnreachable = async (store: S3Store) => {
        await Promise.all(
          everything(store).map(async ([name, call]) => {
            await expect(call(), name).rejects.toMatchObject(UNAVAILABLE);
          }),
        );
      };
      for (const breaks of [
        () => proxy.refuse(),
        () => proxy.blackhole(),
        () => proxy.blackhole('down'),
      ]) {
        breaks();
        await expectUnreachable(warm);
        await expectUnreachable(open());
        proxy.heal();
        expect(String(await buffer(await warm.get('kept')))).toBe('kept');
      }
      await minio.down();
      await expectUnreachable(openStore(minio));
      await minio.up();
      // The connections that were kept are all closed by now.
      expect(String(await buffer(await warm.get('kept')))).toBe('kept');
      await warm.put('again', Buffer.from('x'));
    });

    describeUnless(missingPrograms('openssl'), 'by TLS', () => {
      test('a certificate that is not trusted is an outage, and told as what it is', async () => {
        const secure = await startTlsServer(minio);
        onTestFinished(() => secure.stop());
        const store = openStore(minio, { endpoint: `https://127.0.0.1:${secure.port}` });
        for (const [name, call] of everything(store))
          await expect(call(), name).rejects.toMatchObject({
            ...UNAVAILABLE,
            message: expect.stringMatching(
              /object store cannot be used: its certificate is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)[^\n]*NODE_EXTRA_CA_CERTS/,
            ),
          });
      });
    });

    test('what does not answer as an S3 server does is an outage, as at a port of https', async () => {
      // Word for word what Go's servers answer there.
      const answer = 'Client sent an HTTP request to an HTTPS server.\n';
      const server = createServer((_, res) => res.writeHead(400).end(answer)).listen(0);
      onTestFinished(() => void server.close());
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const store = openStore(minio, { endpoint: `http://127.0.0.1:${port}` });
      for (const [name, call] of everything(store))
        await expect(call(), name).rejects.toMatchObject({
          ...UNAVAILABLE,
          message: expect.stringMatching(/no answer of an S3 server \(status 400\)[^\n]*https:/),
        });
    });

    test('repeats a request on a kept connection that the server closed', async () => {
      const proxy = await startTcpProxy(minio);
      onTestFinished(() => proxy.stop());
      const store = openStore(minio, { endpoint: `http://127.0.0.1:${proxy.port}` });
      await store.put('cut/a', Buffer.from('x'));
      for (let i = 0; i < 20; i++) {
        proxy.cut();
        expect(await store.stat('cut/a')).toMatchObject({ size: 1 });
        proxy.cut();
        expect(await store.put(`cut/${i}`, Readable.from([MIB]), { size: 1 << 20 })).toBe(1 << 20);
      }
    });

    test('an answer that breaks off or stalls in the middle is unavailable', async () => {
      const proxy = await startTcpProxy(minio);
      onTestFinished(() => proxy.stop());
      const store = openStore(minio, {
        endpoint: `http://127.0.0.1:${proxy.port}`,
        stallMs: 700,
      });
      await store.put('middle/a', Buffer.alloc(16 << 20));
      for (const breaks of [() => proxy.cut(), () => proxy.blackhole('down')]) {
        let bytes = 0;
        const read = async () => {
          for await (const piece of await store.get('middle/a')) {
            if (bytes === 0) breaks();
            bytes += (piece as Buffer).length;
          }
        };
        await expect(read()).rejects.toMatchObject(UNAVAILABLE);
        expect(bytes).toBeLessThan(16 << 20);
        proxy.heal();
      }
    });
  });

  describeUnless(missingRoot(), 'a full disk', () => {
    test('is insufficient_storage, with and without a declared size', async () => {
      const directory = makeTempDir('full');
      onTestFinished(() => directory.remove());
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', directory.path]);
      onTestFinished(() => void execFileSync('umount', ['-l', directory.path]));
      const minio = await startMinio({ drive: directory.path });
      onTestFinished(() => minio.stop());
      const store = openStore(minio);
      await store.put('small', Buffer.from('x'));
      const pieces = () => Readable.from(Array(100).fill(MIB), { objectMode: false });
      const full = { code: 'insufficient_storage' };
      await expect(store.put('a', pieces())).rejects.toMatchObject(full);
      await expect(store.put('b', pieces(), { size: 100 << 20 })).rejects.toMatchObject(full);
      await expect(store.put('c', Buffer.alloc(100 << 20))).rejects.toMatchObject(full);
      expect(await listUploads(minio, 'a')).toEqual([]);
      expect(await listAll(store)).toEqual(['small']);
      expect(String(await buffer(await store.get('small')))).toBe('x');
    });
  });
});

function openStore(
  { endpoint, accessKey, secretKey }: TestMinio,
  other: Partial<ConstructorParameters<typeof S3Store>[0]> = {},
): S3Store {
  return new S3Store({
    endpoint,
    region: 'us-east-1',
    bucket: 'windlass',
    accessKey,
    secretKey,
    ...other,
  });
}

async function listAll(store: S3Store): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list('')) keys.push(key);
  return keys;
}

function openClient({ host, port, accessKey, secretKey }: TestMinio): Client {
  return new Client({ endPoint: host, port, useSSL: false, accessKey, secretKey });
}

async function listUploads(minio: TestMinio, key: string) {
  const page = await openClient(minio).listIncompleteUploadsQuery('windlass', key, '', '', '');
  return page.uploads;
}
