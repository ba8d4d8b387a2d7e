import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { endWithThisProcess } from '../../servers/processes.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import { describeObjectStore } from '../../test/harness/files/store-contract.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { describeUnless, missingRoot } from '../../test/harness/skip.ts';
import { shareObjects } from './share-objects.ts';

const directory = makeTempDir('shared-store');
afterAll(() => directory.remove());
const GID = 61_235;
let made = 0;

/** A folder that is shared with a group of this process, or with GID where root may. */
async function share(gid = process.getgid?.() ?? 0): Promise<string> {
  const root = join(directory.path, String(made++));
  await shareObjects(root, gid);
  return root;
}

describe.runIf(process.platform === 'linux')('objects that two users share', () => {
  describeObjectStore('as a store', async () => ({
    store: new FileStore(await share()),
    close: () => {},
  }));

  describe('and one of them puts links there', () => {
    let root: string;
    let store: FileStore;
    let elsewhere: string;
    const plant = (name: string) => join(root, 'objects', name);

    beforeEach(async () => {
      root = await share();
      store = new FileStore(root);
      elsewhere = join(directory.path, `elsewhere-${made}`);
      mkdirSync(join(elsewhere, 'a'), { recursive: true });
      writeFileSync(join(elsewhere, 'secret'), 'secret');
      writeFileSync(join(elsewhere, 'a', 'secret'), 'secret');
    });

    test('nothing is read, written or removed elsewhere', async () => {
      symlinkSync(elsewhere, plant('files'));
      mkdirSync(plant('videos'));
      symlinkSync(join(elsewhere, 'secret'), plant('videos/file'));
      symlinkSync('/dev/zero', plant('videos/device'));
      for (const key of ['files/secret', 'files/a/secret', 'videos/file', 'videos/device']) {
        await expect(store.get(key)).rejects.toThrow();
        expect(await store.stat(key).catch(() => undefined)).toBeUndefined();
      }
      await expect(store.put('files/new', Buffer.from('x'))).rejects.toThrow('out of the object');
      await expect(store.put('files/b/new', Buffer.from('x'))).rejects.toThrow('out of the object');
      await store.remove('files/secret').catch(() => {});
      await store.remove('files/a/secret').catch(() => {});
      await store.remove('videos/file');
      expect(existsSync(plant('videos/file'))).toBe(false);
      expect(readdirSync(elsewhere).sort()).toEqual(['a', 'secret']);
      expect(readFileSync(join(elsewhere, 'a', 'secret'), 'utf8')).toBe('secret');
      const listed: string[] = [];
      for await (const { key } of store.list('')) listed.push(key);
      expect(listed).toEqual([]);
      expect(readdirSync(join(root, 'incoming'))).toEqual([]);
    });

    test('also not where a folder changes places with a link all the time', async () => {
      await store.put('files/one', Buffer.from('ours'));
      writeFileSync(join(elsewhere, 'one'), 'secret');
      const folder = [plant('files'), plant('kept'), elsewhere];
      const script = 'while :; do mv "$1" "$2"; ln -s "$3" "$1"; rm "$1"; mv "$2" "$1"; done';
      const swapper = spawn('/bin/sh', ['-c', script, 'sh', ...folder], { stdio: 'ignore' });
      endWithThisProcess(swapper);
      const outcomes = { read: 0, refused: 0 };
      try {
        for (let n = 0; n < 400 || outcomes.read === 0 || outcomes.refused === 0; n++) {
          try {
            const bytes = await (await store.get('files/one')).toArray();
            expect(Buffer.concat(bytes).toString()).toBe('ours');
            outcomes.read++;
          } catch (error) {
            if (String(error).includes('secret')) throw error;
            outcomes.refused++;
          }
          await store.remove('files/secret').catch(() => {});
        }
      } finally {
        swapper.kill('SIGKILL');
        await once(swapper, 'exit');
      }
      expect(readdirSync(elsewhere).sort()).toEqual(['a', 'one', 'secret']);
    });
  });

  describeUnless(missingRoot(), 'with a group that is not ours', () => {
    test('what was there and what comes are of the group, in its modes', async () => {
      const root = join(directory.path, 'before');
      const before = new FileStore(root);
      await before.put('files/a/old', Buffer.from('old'));
      await shareObjects(root, GID);
      const old = process.umask(0o007);
      try {
        await new FileStore(root).put('files/b/c/new', Buffer.from('new'));
      } finally {
        process.umask(old);
      }
      const modes = (path: string) => {
        const { gid, mode } = statSync(join(root, path));
        return [gid, (mode & 0o7777).toString(8)];
      };
      expect(modes('.')).toEqual([GID, '2750']);
      for (const folder of ['objects', 'incoming', 'objects/files/a', 'objects/files/b/c'])
        expect([folder, ...modes(folder)]).toEqual([folder, GID, '2770']);
      for (const file of ['objects/files/a/old', 'objects/files/b/c/new'])
        expect([file, ...modes(file)]).toEqual([file, GID, '640']);
    });

    test('a hard link to a file of another group is not read', async () => {
      const root = await share(GID);
      const secret = join(directory.path, 'secret.json');
      writeFileSync(secret, 'secret', { mode: 0o600 });
      chownSync(secret, 0, 0);
      mkdirSync(join(root, 'objects/files'));
      chmodSync(join(root, 'objects/files'), 0o2770);
      linkSync(secret, join(root, 'objects/files/link'));
      await expect(new FileStore(root).get('files/link')).rejects.toThrow('another file than ours');
    });
  });
});
