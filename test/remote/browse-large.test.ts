import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { FileEntry } from 'ssh2';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadOrCreateKeyPair } from '../../servers/key-pair.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { openSession } from '../harness/hosts/remote.ts';
import { makeEntry, startSftpServer } from '../harness/hosts/sftp-server.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { expectFlat, missingMemory, watchMemory } from '../harness/stacks/memory.ts';
import { useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';

/** Files in a large folder. */
const FILES = 100_000;
/** What one answer of a server holds here; of OpenSSH's it may be 100. */
const ANSWER = 100;
/** Names longer than most file systems take, for few entries: in bytes 200 MB and as entries in memory far more than a process may take (memory.ts). */
const LONG_NAMES = 400_000;
const NAME_LENGTH = 500;
const PASSWORD = 'a password';

const directory = makeTempDir('browse-large');
const folder = join(directory.path, 'folder');
const nameOf = (n: number) => `frame-${String(n).padStart(7, '0')}.png`;
afterAll(() => directory.remove());

describeStack(missingMemory() ?? missingPrograms('sshd'), 'browsing large folders', form => {
  beforeAll(() => {
    // Before there is a connection that could be closed while this process hears of nothing.
    if (mkdirSync(folder, { recursive: true })) {
      for (let n = 0; n < FILES; n++) closeSync(openSync(join(folder, nameOf(n)), 'w'));
    }
  });
  let list: () => AsyncGenerator<FileEntry[]>;
  const key = loadOrCreateKeyPair(join(directory.path, 'server_key'));
  const server = useStarted(() =>
    startSftpServer({ hostKey: key.private, password: PASSWORD, list: () => list() }),
  );
  const { stack, client, sshd } = useRemoteStack(form, {
    alone: 'measures the memory of its processes',
  });

  beforeAll(async () => {
    await client.post('/api/hosts', {
      name: 'sftp',
      address: '127.0.0.1',
      port: server.port,
      keys: [key.public],
      agent: false,
      private: true,
    });
  });

  const browse = (sid: string, path: string) =>
    client.fetch(`/api/remotes/${sid}/browse${path}`, { method: 'POST' });
  const openSftp = async () => {
    const login = { hostname: 'sftp', username: 'somebody', password: PASSWORD };
    return (await client.post<{ sid: string }>('/api/remotes', login)).sid;
  };

  test(`a folder of ${FILES} files comes whole, at flat memory`, async () => {
    const sid = await openSession(client, sshd);
    const memory = watchMemory(stack);
    const answer = await browse(sid, folder);
    const { path, names, sizes, types, mtimes } = (await answer.json()) as Record<string, string[]>;
    expect(path).toBe(folder);
    expect(names?.toSorted()).toEqual(Array.from({ length: FILES }, (_, n) => nameOf(n)));
    expect(sizes).toEqual(Array(FILES).fill(0));
    expect(types).toEqual(Array(FILES).fill('f'));
    expect(mtimes).toHaveLength(FILES);
    expect(mtimes?.every(time => Date.parse(time) > 0)).toBe(true);
    expectFlat(memory.growth());
  });

  test('the first entries are there while the host still reads the others', async () => {
    let goOn = () => {};
    const held = new Promise<void>(resolve => {
      goOn = resolve;
    });
    list = async function* () {
      yield [makeEntry('first')];
      await held;
      yield [makeEntry('last')];
    };
    const answer = await browse(await openSftp(), '/slow');
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('"first"')) text += (await reader?.read())?.value ?? '';
    expect(text).toBe('{"path":"/slow","names":["first"');
    goOn();
    for (let next = await reader?.read(); !next?.done; next = await reader?.read())
      text += next?.value ?? '';
    const mtime = '2023-11-14T22:13:20.000Z';
    expect(JSON.parse(text)).toEqual({
      path: '/slow',
      names: ['first', 'last'],
      sizes: [1, 1],
      types: ['f', 'f'],
      mtimes: [mtime, mtime],
    });
  });

  test('a host that says nothing of an entry but its name is believed', async () => {
    list = async function* () {
      yield [{ ...makeEntry('bare'), attrs: {} as FileEntry['attrs'] }];
    };
    const answer = await browse(await openSftp(), '/bare');
    expect(await answer.json()).toEqual({
      path: '/bare',
      names: ['bare'],
      sizes: [0],
      types: ['f'],
      mtimes: ['1970-01-01T00:00:00.000Z'],
    });
  });

  test('answers of a host without an entry leave no gap', async () => {
    list = async function* () {
      yield [makeEntry('.')];
      yield [makeEntry('one')];
    };
    const answer = await browse(await openSftp(), '/gap');
    expect(await answer.json()).toMatchObject({ names: ['one'], sizes: [1], types: ['f'] });
  });

  test('a host that is lost in the middle of a listing leaves an answer that does not look whole', async () => {
    list = async function* () {
      yield [makeEntry('first')];
      await new Promise(() => {});
    };
    const answer = await browse(await openSftp(), '/cut');
    const reader = answer.body?.getReader();
    await reader?.read();
    server.disconnect();
    await expect(readToEnd(reader)).rejects.toThrow('terminated');
  });

  test('the names may be far more than a process holds', async () => {
    list = async function* () {
      for (let n = 0; n < LONG_NAMES; n += ANSWER)
        yield Array.from({ length: ANSWER }, (_, i) =>
          makeEntry(String(n + i).padStart(NAME_LENGTH, 'x')),
        );
    };
    const sid = await openSftp();
    const memory = watchMemory(stack);
    const reader = (await browse(sid, '/many')).body?.getReader();
    expect(await readToEnd(reader)).toBeGreaterThan(LONG_NAMES * (NAME_LENGTH + 36));
    expectFlat(memory.growth());
  });
});

/** How many bytes came. */
async function readToEnd(
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
): Promise<number> {
  let bytes = 0;
  for (let next = await reader?.read(); next && !next.done; next = await reader?.read())
    bytes += next.value.length;
  return bytes;
}
