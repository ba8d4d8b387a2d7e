import { execFileSync } from 'node:child_process';
import {
  createReadStream,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, expect, test } from 'vitest';
import { describeObjectStore } from '../../test/harness/files/store-contract.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { describeUnless, missingRoot } from '../../test/harness/skip.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { FileStore } from './file-store.ts';

const directory = makeTempDir('store');
afterAll(() => directory.remove());

describeObjectStore('objects as files', async () => ({
  store: new FileStore(join(directory.path, 'contract')),
  close: () => {},
}));

test('removes a folder with the last object in it', async () => {
  const root = join(directory.path, 'emptied');
  const store = new FileStore(root);
  for (const key of ['a/b/1', 'a/b/2', 'a/c']) await store.put(key, Buffer.from('x'));
  await store.remove('a/b/1');
  expect(readdirSync(join(root, 'objects', 'a')).sort()).toEqual(['b', 'c']);
  await store.remove('a/b/2');
  expect(readdirSync(join(root, 'objects', 'a'))).toEqual(['c']);
  await store.remove('a/c');
  expect(readdirSync(join(root, 'objects'))).toEqual([]);
  await store.remove('a/c');
  await store.check();
});

test('a failed put leaves no file behind', async () => {
  const root = join(directory.path, 'failed');
  const store = new FileStore(root);
  const failing = async function* () {
    yield Buffer.alloc(100_000);
    throw new Error('the source broke');
  };
  await expect(store.put('a', Readable.from(failing()))).rejects.toThrow();
  expect(readdirSync(join(root, 'incoming'))).toEqual([]);
});

test('a file that is read in pieces stays open in between, and is closed soon after', async () => {
  const root = join(directory.path, 'pieces');
  const store = new FileStore(root);
  const countOpen = () => readdirSync('/proc/self/fd').filter(isBelow(root)).length;
  await expect(store.read('a/1', Buffer.alloc(1), 0)).rejects.toMatchObject({ code: 'not_found' });
  await store.put('a/1', Buffer.from('0123456789'));
  await store.put('a/2', Buffer.from('abc'));
  const read = async (key: string, start: number, length: number) => {
    const into = Buffer.alloc(length);
    await store.read(key, into, start);
    return String(into);
  };
  const reads = Array.from({ length: 9 }, (_, start) => read('a/1', start, 2));
  expect(await Promise.all(reads)).toEqual('01 12 23 34 45 56 67 78 89'.split(' '));
  expect(countOpen()).toBe(1);
  expect(await store.stat('a/1')).toMatchObject({ size: 10, modified: expect.any(Date) });
  await expect(read('a/1', 8, 3)).rejects.toThrow('ends too early');
  await store.remove('a/1');
  expect(await store.stat('a/1')).toBeUndefined();
  await expect(read('a/1', 0, 1)).rejects.toMatchObject({ code: 'not_found' });
  expect(await read('a/2', 0, 3)).toBe('abc');
  // Another process removes it.
  await new FileStore(root).remove('a/2');
  expect(await store.stat('a/2')).toBeUndefined();
  await store.put('a/2', Buffer.from('abc'));
  expect(await read('a/2', 0, 3)).toBe('abc');
  await waitFor(() => countOpen() === 0, { what: 'the files to be closed' });
  expect(await read('a/2', 1, 2)).toBe('bc');
});

test('few files stay open that nobody reads, however many were read', async () => {
  const root = join(directory.path, 'many');
  const store = new FileStore(root);
  const keys = Array.from({ length: 100 }, (_, i) => `a/${i}`);
  for (const key of keys) await store.put(key, Buffer.from(key));
  await Promise.all(
    keys.map(async key => {
      const into = Buffer.alloc(key.length);
      await store.read(key, into, 0);
      expect(String(into)).toBe(key);
    }),
  );
  const countOpen = () => readdirSync('/proc/self/fd').filter(isBelow(root)).length;
  await waitFor(() => countOpen() <= 64, { what: 'most files to be closed', timeoutMs: 1_500 });
});

/** Whether a descriptor of this process is of something in the folder. */
const isBelow = (folder: string) => (fd: string) => {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder);
  } catch {
    return false;
  }
};

test('removes what killed writers left, and nothing that is being written', async () => {
  const root = join(directory.path, 'abandoned');
  const store = new FileStore(root);
  const incoming = join(root, 'incoming');
  await store.removeAbandonedWrites(new Date());
  await store.put('kept', Buffer.from('x'));
  const old = join(incoming, 'old');
  writeFileSync(old, '');
  utimesSync(old, 1, 1);
  const slow = async function* () {
    yield Buffer.alloc(1 << 20);
    await store.removeAbandonedWrites(new Date(Date.now() - 60_000));
    yield Buffer.alloc(1 << 20);
  };
  expect(await store.put('slow', Readable.from(slow()))).toBe(2 << 20);
  expect(readdirSync(incoming)).toEqual([]);
  expect(await store.stat('slow')).toMatchObject({ size: 2 << 20 });
  expect(await store.stat('kept')).toMatchObject({ size: 1 });
});

test('a store that cannot be used says that it is unavailable', async () => {
  const root = join(directory.path, 'file');
  writeFileSync(root, '');
  await expect(new FileStore(root).check()).rejects.toMatchObject({ code: 'unavailable' });
});

const AWAY = { code: 'unavailable', headers: { 'Retry-After': '2' } };

test('a disk that cannot be read is unavailable, also in the middle', async () => {
  const root = join(directory.path, 'unreadable');
  const store = new FileStore(root);
  await store.check();
  // Its first byte cannot be read (EIO).
  symlinkSync('/proc/self/mem', join(root, 'objects', 'broken'));
  await expect(store.read('broken', Buffer.alloc(1), 0)).rejects.toMatchObject(AWAY);
  await expect(buffer(await store.get('broken'))).rejects.toMatchObject(AWAY);
  // It is the source's own fault, which the store does not mend.
  const source = createReadStream('/proc/self/mem');
  await expect(store.put('a', source)).rejects.toMatchObject({ code: 'EIO' });
});

describeUnless(missingRoot(), 'a folder that becomes read-only', () => {
  test('is unavailable to who writes, until it is not', async () => {
    const mounted = join(directory.path, 'read-only');
    mkdirSync(mounted);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', mounted]);
    try {
      const store = new FileStore(mounted);
      const bytes = Buffer.from('x');
      await store.put('kept', bytes);
      const remount = (how: 'ro' | 'rw') =>
        execFileSync('mount', ['-o', `remount,${how}`, mounted]);
      remount('ro');
      const writes = {
        put: () => store.put('a', bytes),
        'put a stream': () => store.put('a', Readable.from([bytes])),
        remove: () => store.remove('kept'),
        check: () => store.check(),
      };
      for (const [name, write] of Object.entries(writes))
        await expect(write(), name).rejects.toMatchObject(AWAY);
      expect(await buffer(await store.get('kept'))).toEqual(bytes);
      remount('rw');
      for (const write of Object.values(writes)) await write();
    } finally {
      execFileSync('umount', ['-l', mounted]);
    }
  });
});

describeUnless(missingRoot(), 'a full disk', () => {
  test('is insufficient_storage, and leaves no file behind', async () => {
    const root = directory.path;
    const mounted = join(root, 'full');
    execFileSync('mkdir', [mounted]);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', mounted]);
    try {
      const store = new FileStore(mounted);
      await expect(store.put('a', Buffer.alloc(2 << 20))).rejects.toMatchObject({
        code: 'insufficient_storage',
      });
      expect(readdirSync(join(mounted, 'incoming'))).toEqual([]);
      expect(await store.put('b', Buffer.alloc(1_000))).toBe(1_000);
    } finally {
      execFileSync('umount', ['-l', mounted]);
    }
  });

  test('of which some bytes are kept free: what would use them is refused, what did so is removed', async () => {
    const mounted = join(directory.path, 'kept-free');
    execFileSync('mkdir', [mounted]);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', mounted]);
    const piece = Buffer.alloc(4 << 20);
    const pieces = function* (count: number) {
      for (let i = 0; i < count; i++) yield piece;
    };
    try {
      const store = new FileStore(mounted, { keepFree: 24 << 20 });
      const full = { code: 'insufficient_storage' };
      // By its size, before a byte is written; by its bytes, while they are; and by what is left in the end.
      await expect(
        store.put('declared', Readable.from(pieces(1)), { size: 48 << 20 }),
      ).rejects.toMatchObject(full);
      await expect(store.put('streamed', Readable.from(pieces(14)))).rejects.toMatchObject(full);
      await expect(store.put('buffers', [...pieces(11)])).rejects.toMatchObject(full);
      const others = join(mounted, 'others');
      const meanwhile = async function* () {
        yield piece;
        writeFileSync(others, Buffer.alloc(40 << 20));
      };
      await expect(store.put('beside', Readable.from(meanwhile()))).rejects.toMatchObject(full);
      expect(readdirSync(join(mounted, 'incoming'))).toEqual([]);
      expect(readdirSync(join(mounted, 'objects'))).toEqual([]);
      rmSync(others);
      expect(await store.put('fits', Readable.from(pieces(8)))).toBe(32 << 20);
    } finally {
      execFileSync('umount', ['-l', mounted]);
    }
  });
});
