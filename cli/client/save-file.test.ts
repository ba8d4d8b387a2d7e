import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { requireWritable, saveFile } from './save-file.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'save-file-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

async function* bytes() {
  yield Buffer.from('new');
}

test('a file that is replaced keeps its permissions, those that the umask would take too', async () => {
  const path = join(folder, 'file');
  for (const mode of [0o664, 0o666, 0o440]) {
    writeFileSync(path, 'old');
    chmodSync(path, mode);
    await saveFile(path, bytes());
    expect(readFileSync(path, 'utf8')).toBe('new');
    expect((statSync(path).mode & 0o777).toString(8)).toBe(mode.toString(8));
    rmSync(path);
  }
  await saveFile(path, bytes());
  expect(statSync(path).mode & 0o777).toBe(0o666 & ~process.umask());
});

test('a name may have as many bytes as the file system takes', async () => {
  for (const name of ['東'.repeat(85), `${'v'.repeat(251)}.mp4`, `a${'𠮷'.repeat(63)}`]) {
    await saveFile(join(folder, name), bytes());
    expect(readdirSync(folder)).toEqual([name]);
    rmSync(join(folder, name));
  }
});

test('a folder is refused before the work', async () => {
  const path = join(folder, 'study.mp4');
  mkdirSync(path);
  await expect(requireWritable(path)).rejects.toMatchObject({
    message: `${path} is a folder here.`,
    hint: 'Name a file.',
  });
  await expect(requireWritable(join(folder, 'missing/'))).rejects.toMatchObject({
    hint: 'Name a file.',
  });
});

test('a link is followed, also to a file that is not there yet', async () => {
  const [link, target] = [join(folder, 'link'), join(folder, 'below', 'file')];
  symlinkSync('below/file', link);
  await expect(requireWritable(link)).rejects.toThrow(
    `There is no folder ${join(folder, 'below')} here.`,
  );
  mkdirSync(join(folder, 'below'));
  for (const present of [false, true]) {
    expect(existsSync(target)).toBe(present);
    await requireWritable(link);
    await saveFile(link, bytes());
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(readFileSync(target, 'utf8')).toBe('new');
  }
});
