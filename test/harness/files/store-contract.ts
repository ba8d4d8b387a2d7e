import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SizeMismatch } from '../../../shared/storage/declared-size.ts';
import type { ObjectStore } from '../../../shared/storage/object-store.ts';

function stop(): AbortController {
  const controller = new AbortController();
  controller.abort(new Error('stopped'));
  return controller;
}

/** What every implementation of ObjectStore holds to. `open` gives an empty store and what removes it again. */
export function describeObjectStore(
  name: string,
  open: () => Promise<{ store: ObjectStore; close(): Promise<void> | void }>,
): void {
  describe(name, () => {
    let store: ObjectStore;
    let close: () => Promise<void> | void;
    beforeAll(async () => {
      ({ store, close } = await open());
    });
    afterAll(() => close?.());

    const read = async (key: string, range?: { start: number; end: number }) =>
      buffer(await store.get(key, { range }));
    const keys = async (prefix: string) => {
      const found: string[] = [];
      for await (const { key } of store.list(prefix)) found.push(key);
      return found.sort();
    };

    test('keeps bytes as they are, from a buffer and from a stream', async () => {
      const bytes = Buffer.from([0, 255, 13, 10, 0xc3, 0x28]);
      expect(await store.put('kept/buffer', bytes)).toBe(6);
      expect(await store.put('kept/stream', Readable.from([bytes, bytes]))).toBe(12);
      expect(await store.put('kept/empty', Buffer.alloc(0))).toBe(0);
      expect((await read('kept/buffer')).equals(bytes)).toBe(true);
      expect((await read('kept/stream')).equals(Buffer.concat([bytes, bytes]))).toBe(true);
      expect(await read('kept/empty')).toHaveLength(0);
      expect(await store.stat('kept/stream')).toMatchObject({
        key: 'kept/stream',
        size: 12,
        modified: expect.any(Date),
      });
    });

    test('gives ranges, both ends included', async () => {
      await store.put('range/a', Buffer.from('0123456789'));
      expect(String(await read('range/a', { start: 0, end: 0 }))).toBe('0');
      expect(String(await read('range/a', { start: 3, end: 6 }))).toBe('3456');
      expect(String(await read('range/a', { start: 9, end: 9 }))).toBe('9');
    });

    test('large objects come whole', async () => {
      const piece = Buffer.alloc(1 << 20, 'x');
      const pieces = function* () {
        for (let i = 0; i < 20; i++) yield piece;
      };
      expect(await store.put('large/a', Readable.from(pieces()))).toBe(20 << 20);
      expect(await read('large/a', { start: (20 << 20) - 2, end: (20 << 20) - 1 })).toHaveLength(2);
      expect(await read('large/a')).toHaveLength(20 << 20);
    });

    test('an announced size is kept to: other numbers of bytes are an error, and nothing is visible', async () => {
      const pieces = (...lengths: number[]) =>
        Readable.from(
          lengths.map(length => Buffer.alloc(length, 'x')),
          { objectMode: false },
        );
      expect(await store.put('size/right', pieces(5, 5), { size: 10 })).toBe(10);
      expect(await read('size/right')).toHaveLength(10);
      expect(await store.put('size/empty', pieces(), { size: 0 })).toBe(0);
      for (const [name, lengths] of [
        ['few', [5, 4]],
        ['many', [5, 6]],
        ['more', [10, 1]],
        ['none', []],
      ] as const) {
        const source = pieces(...lengths);
        await expect(store.put(`size/${name}`, source, { size: 10 }), name).rejects.toThrow(
          SizeMismatch,
        );
        expect(source.destroyed).toBe(true);
      }
      await expect(store.put('size/buffer', Buffer.alloc(9), { size: 10 })).rejects.toThrow(
        SizeMismatch,
      );
      expect(await keys('size/')).toEqual(['size/empty', 'size/right']);
    });

    test('many puts at once do not disturb each other', async () => {
      const names = Array.from({ length: 40 }, (_, i) => `many/${String(i).padStart(2, '0')}`);
      await Promise.all(
        names.map((name, i) =>
          i % 2 === 0
            ? store.put(name, Buffer.from(name))
            : store.put(name, Readable.from([Buffer.from(name)]), {
                size: i % 4 === 1 ? name.length : undefined,
              }),
        ),
      );
      expect(await keys('many/')).toEqual(names);
      for (const name of names) expect(String(await read(name))).toBe(name);
      await Promise.all(names.map(name => store.remove(name)));
      expect(await keys('many/')).toEqual([]);
    });

    test('a key may be put where the folder of others has just become empty', async () => {
      for (let round = 0; round < 20; round++) {
        await store.put('emptied/in/a', Buffer.from('a'));
        await Promise.all([
          store.remove('emptied/in/a'),
          store.put('emptied/in/b', Buffer.from('b')),
          store.put('emptied/in/c/d', Buffer.from('d')),
        ]);
        expect(await keys('emptied/')).toEqual(['emptied/in/b', 'emptied/in/c/d']);
        await Promise.all([store.remove('emptied/in/b'), store.remove('emptied/in/c/d')]);
      }
    });

    for (const size of [undefined, 100 << 20]) {
      const given = size === undefined ? 'unknown' : 'given';
      test(`100 MiB of ${given} size pass at flat memory`, { timeout: 60_000 }, async () => {
        const piece = Buffer.alloc(1 << 20, 'x');
        const before = process.memoryUsage().arrayBuffers;
        let peak = 0;
        const pieces = function* () {
          for (let i = 0; i < 100; i++) {
            peak = Math.max(peak, process.memoryUsage().arrayBuffers - before);
            yield piece;
          }
        };
        const source = Readable.from(pieces(), { objectMode: false });
        expect(await store.put('flat/a', source, { size })).toBe(100 << 20);
        expect(peak).toBeLessThan(64 << 20);
        let bytes = 0;
        for await (const part of await store.get('flat/a')) bytes += (part as Buffer).length;
        expect(bytes).toBe(100 << 20);
        await store.remove('flat/a');
      });
    }

    test('a source that is destroyed, or hangs when it is given up, ends the put', async () => {
      for (const size of [undefined, 10]) {
        const gone = new Readable({ read() {} });
        gone.destroy();
        await expect(store.put('ended/gone', gone, { size })).rejects.toThrow();
        const hanging = new Readable({ read() {} });
        hanging.push(Buffer.alloc(5));
        const stop = new AbortController();
        const putting = store.put('ended/hanging', hanging, { size, signal: stop.signal });
        stop.abort(new Error('stopped'));
        await expect(putting).rejects.toThrow();
        expect(hanging.destroyed).toBe(true);
        await expect(
          store.put('ended/before', Readable.from([]), { size, signal: stop.signal }),
        ).rejects.toThrow();
      }
      await expect(
        store.put('ended/buffer', Buffer.alloc(5), { signal: stop().signal }),
      ).rejects.toThrow();
      expect(await keys('ended/')).toEqual([]);
    });

    test('a reader may leave in the middle, by its signal or by itself', async () => {
      await store.put('left/a', Buffer.alloc(20 << 20));
      const leave = new AbortController();
      const bytes = await store.get('left/a', { signal: leave.signal });
      const reading = buffer(bytes);
      leave.abort();
      await expect(reading).rejects.toThrow();
      for await (const _ of await store.get('left/a')) break;
      expect(await read('left/a', { start: 5, end: 9 })).toHaveLength(5);
      await expect(store.get('left/a', { signal: leave.signal }).then(buffer)).rejects.toThrow();
      // Who reads later than the error comes learns of it, and the process goes on.
      const early = await store.get('left/a', { signal: leave.signal }).catch(() => undefined);
      while (early?.closed === false) await setImmediate();
      if (early) await expect(buffer(early)).rejects.toThrow();
    });

    test('what is not there is undefined, not_found, and no error to remove', async () => {
      expect(await store.stat('none/a')).toBeUndefined();
      await expect(store.get('none/a')).rejects.toMatchObject({ code: 'not_found' });
      await store.remove('none/a');
      await store.put('gone/a', Buffer.from('x'));
      expect(await store.stat('gone')).toBeUndefined();
      await store.remove('gone/a');
      expect(await store.stat('gone/a')).toBeUndefined();
    });

    test('a put that fails or is aborted leaves nothing to be seen', async () => {
      const failing = async function* () {
        yield Buffer.from('first');
        throw new Error('the source broke');
      };
      await expect(store.put('half/failed', Readable.from(failing()))).rejects.toThrow(
        'the source broke',
      );
      const stop = new AbortController();
      const endless = async function* () {
        for (let n = 0; ; n++) {
          if (n === 3) stop.abort(new Error('stopped'));
          yield Buffer.alloc(1_000);
        }
      };
      await expect(
        store.put('half/aborted', Readable.from(endless()), { signal: stop.signal }),
      ).rejects.toThrow();
      expect(await keys('half/')).toEqual([]);
      expect(await store.stat('half/failed')).toBeUndefined();
    });

    test('nothing of an object is seen before all of it is', async () => {
      let release = () => {};
      const released = new Promise<void>(resolve => {
        release = resolve;
      });
      let reached = () => {};
      const half = new Promise<void>(resolve => {
        reached = resolve;
      });
      const slow = async function* () {
        yield Buffer.alloc(1 << 20);
        reached();
        await released;
        yield Buffer.alloc(1 << 20);
      };
      const putting = store.put('slow/a', Readable.from(slow()));
      await half;
      expect(await store.stat('slow/a')).toBeUndefined();
      expect(await keys('slow/')).toEqual([]);
      release();
      expect(await putting).toBe(2 << 20);
      expect(await keys('slow/')).toEqual(['slow/a']);
    });

    test('lists by prefix, with sizes', async () => {
      for (const key of ['list/a/1', 'list/a/2', 'list/ab', 'listing'])
        await store.put(key, Buffer.from(key));
      expect(await keys('list/')).toEqual(['list/a/1', 'list/a/2', 'list/ab']);
      expect(await keys('list/a')).toEqual(['list/a/1', 'list/a/2', 'list/ab']);
      expect(await keys('list')).toEqual(['list/a/1', 'list/a/2', 'list/ab', 'listing']);
      expect(await keys('nowhere/')).toEqual([]);
      for await (const { key, size } of store.list('list/')) expect(size).toBe(key.length);
    });

    test('refuses keys that could lead elsewhere', async () => {
      for (const key of ['', '/a', 'a/', 'a//b', '../a', 'a/../b', 'a/./b', 'a b', 'ä', 'a\0'])
        await expect(store.put(key, Buffer.from('x')), key).rejects.toThrow('bad object key');
    });

    test('says that it works', async () => {
      await expect(store.check()).resolves.toBeUndefined();
    });
  });
}
