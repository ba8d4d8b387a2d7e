import { expect, test } from 'vitest';
import { type Entry, type Read, readEntry } from './read-entry.ts';

const REFUSED = new DOMException('No permission.', 'NotReadableError');
const file = (name: string, isRefused = false): Entry<string> => ({
  name,
  isFile: true,
  file: (resolve, refuse) => (isRefused ? refuse(REFUSED) : resolve(`bytes of ${name}`)),
});
const folder = (name: string, entries: Entry<string>[], isRefused = false): Entry<string> => ({
  name,
  isFile: false,
  createReader: () => {
    const rest = [...entries];
    return {
      readEntries: (resolve, refuse) => (isRefused ? refuse(REFUSED) : resolve(rest.splice(0, 2))),
    };
  },
});

test('what cannot be read is named, and leaves the others where they are', async () => {
  const closed = folder('closed', [file('secret')], true);
  const run = folder('run', [file('a'), closed, file('b', true), folder('deep', [file('c')])]);
  const read: Read<string> = { files: [], unreadable: [] };
  await readEntry(run, read);
  expect(read).toEqual({
    files: [
      { path: 'run/a', file: 'bytes of a' },
      { path: 'run/deep/c', file: 'bytes of c' },
    ],
    unreadable: ['run/closed', 'run/b'],
  });
});
