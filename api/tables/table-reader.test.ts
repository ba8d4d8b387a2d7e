import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FileStore } from '../../shared/storage/file-store.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { TableReader } from './table-reader.ts';

const SIZE = 1_000;
const ROWS = { kind: 'rows' as const, columns: ['a'], exact: [], start: 0, end: 1 };
const directory = makeTempDir('table-reader');
afterAll(() => directory.remove());

/** A store whose disk hangs under one object. */
class HangingStore extends FileStore {
  readonly #waiting: (() => void)[] = [];
  asked = 0;

  override async get(...given: Parameters<FileStore['get']>): Promise<Readable> {
    if (given[0] === 'slow') {
      this.asked++;
      await new Promise<void>(resolve => this.#waiting.push(resolve));
    }
    return super.get(...given);
  }

  release(): void {
    for (const go of this.#waiting.splice(0)) go();
  }
}

const store = new HangingStore(join(directory.path, 'store'));
const reader = new TableReader(store);
const read = (key: string, user: string, hasLeft = false) => {
  const reading = {
    user,
    hasLeft: () => hasLeft,
    reserveMemory: async () => {},
    confirm: async () => {},
    isNamed: async (name: string) => name === 'lost',
  };
  return reader.read({ key, size: SIZE }, ROWS, reading).then(
    () => 'read',
    (error: Error) => error.message,
  );
};

beforeAll(async () => {
  for (const key of ['slow', 'broken']) await store.put(key, Buffer.alloc(SIZE, 'x'));
});

test('a user with slow tables does not delay others', async () => {
  const slow = Array.from({ length: 8 }, () => read('slow', 'one'));
  await waitFor(() => store.asked === 2, { what: 'the slow tables to be asked for' });
  expect(await read('broken', 'another')).toContain('parquet');
  expect(store.asked).toBe(2);
  const left = read('slow', 'one', true);
  await waitFor(
    () => {
      store.release();
      return store.asked === 8;
    },
    { what: 'the others to have their turn' },
  );
  store.release();
  expect(await Promise.all(slow)).toEqual(Array(8).fill(expect.stringContaining('parquet')));
  // Nothing is read for a client that has disconnected.
  expect(await left).toContain('ended early');
  expect(store.asked).toBe(8);
});

test('a table deleted meanwhile is a conflict, and one whose bytes are lost is not', async () => {
  expect(await read('gone', 'one')).toContain('replaced or deleted');
  expect(await read('lost', 'one')).toContain('no longer kept');
});
