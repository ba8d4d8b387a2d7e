import ssh2, { type Attributes, type SFTPWrapper } from 'ssh2';
import { expect, test } from 'vitest';
import { openLyingSftp } from '../../test/harness/hosts/lying-sftp.ts';
import { writeText } from '../../test/harness/hosts/remote-files.ts';
import { makeEntry } from '../../test/harness/hosts/sftp-server.ts';
import { listDirectory } from './list-directory.ts';

const { OK, EOF, FAILURE, NO_SUCH_FILE } = ssh2.utils.sftp.STATUS_CODE;
const HANDLE = Buffer.from('handle');
const patient = new AbortController().signal;
const attributesOf = (mode: number, size = 0): Attributes => ({
  ...makeEntry('').attrs,
  mode,
  size,
});
const FILE = attributesOf(0o100_644);

type Answer = (sftp: SFTPWrapper, id: number) => void;

/** How many entries a directory has, which the host lists with these answers. */
async function countEntries(answers: { open?: Answer; read: Answer }): Promise<number> {
  const { open = (sftp, id) => sftp.handle(id, HANDLE), read } = answers;
  const session = await openLyingSftp(sftp => {
    sftp.on('OPENDIR', id => open(sftp, id)).on('READDIR', id => read(sftp, id));
    sftp.on('STAT', id => sftp.status(id, NO_SUCH_FILE));
  });
  let entries = 0;
  for await (const { length } of listDirectory(session, '/folder', patient)) entries += length;
  expect(session.isClosed).toBe(false);
  return entries;
}

const WRONG: [string, Answer][] = [
  ['a status', (sftp, id) => sftp.status(id, OK)],
  ['a handle', (sftp, id) => sftp.handle(id, HANDLE)],
  ['data', (sftp, id) => sftp.data(id, Buffer.from('data'))],
  ['attributes', (sftp, id) => sftp.attrs(id, FILE)],
  ['names', (sftp, id) => sftp.name(id, [makeEntry('name')])],
];
const isWrong = {
  code: 'sftp_unavailable',
  message: expect.stringContaining('breaks the protocol'),
};

test.each(WRONG.filter(([what]) => what !== 'names'))(
  'a directory whose entries are %s is told as a fault of the host',
  async (_what, read) => {
    await expect(countEntries({ read })).rejects.toMatchObject(isWrong);
  },
);

test.each(WRONG.filter(([what]) => ['status', 'attributes', 'names'].some(w => what.includes(w))))(
  'a directory that is opened by %s is, too',
  async (_what, open) => {
    const read: Answer = (sftp, id) => sftp.status(id, EOF);
    await expect(countEntries({ open, read })).rejects.toMatchObject(isWrong);
  },
);

test.each([
  ['no name', []],
  ['its own name alone', ['.', '..']],
])('a directory of which each answer has %s ends', async (_what, names) => {
  const read: Answer = (sftp, id) => sftp.name(id, names.map(makeEntry));
  await expect(countEntries({ read })).rejects.toMatchObject(isWrong);
});

test('an answer without a name in between is no end', async () => {
  let answers = 0;
  const read: Answer = (sftp, id) => {
    const names = answers++ % 2 === 0 ? [] : [makeEntry(`${answers}`)];
    if (answers > 3_000) sftp.status(id, EOF);
    else sftp.name(id, names);
  };
  expect(await countEntries({ read })).toBe(1_500);
});

test('what a host says of a refusal is told in part, without control characters', async () => {
  const open: Answer = (sftp, id) => sftp.status(id, FAILURE, `\x1b[2Jno\0 ${'x'.repeat(10_000)}`);
  const read: Answer = (sftp, id) => sftp.status(id, EOF);
  const error: Error = await countEntries({ open, read }).then(
    () => expect.unreachable(),
    (thrown: Error) => thrown,
  );
  expect(error.message).toMatch(/cannot be read: \[2Jno x+\.$/);
  expect(error.message.length).toBeLessThan(5_000);
});

/** Writes a file on a host that stores one byte less than it is sent, or answers otherwise. */
async function write(answers: { fstat?: Answer; readlink?: Answer; present?: Attributes } = {}) {
  const { fstat = (sftp: SFTPWrapper, id: number) => sftp.attrs(id, FILE) } = answers;
  const session = await openLyingSftp(sftp => {
    let stored = 0;
    const present = (id: number, path: string) => {
      if (path === '/') sftp.attrs(id, attributesOf(0o040_755));
      else if (path.includes('job-2')) sftp.attrs(id, attributesOf(0o100_644, stored - 1));
      else if (answers.present) sftp.attrs(id, answers.present);
      else sftp.status(id, NO_SUCH_FILE);
    };
    const agree = (id: number) => sftp.status(id, OK);
    sftp.on('STAT', present).on('LSTAT', present);
    sftp.on('OPEN', id => sftp.handle(id, HANDLE));
    sftp.on('FSTAT', id => fstat(sftp, id)).on('READLINK', id => answers.readlink?.(sftp, id));
    sftp.on('FSETSTAT', agree).on('CLOSE', agree).on('REMOVE', agree).on('EXTENDED', agree);
    sftp.on('WRITE', (id, _handle, _offset, { length }) => {
      stored += length;
      agree(id);
    });
  });
  return writeText(session, '/file', 'letter');
}

test('a file of which fewer bytes are stored than were sent is no success, and is named', async () => {
  await expect(write()).rejects.toMatchObject({
    code: 'remote_disk_full',
    message: expect.stringMatching(/of the 6 bytes of \/file the host stored 5;/),
  });
});

test('a host that tells no attributes of a file, or no target of a link, is told as that', async () => {
  const fstat: Answer = (sftp, id) => sftp.status(id, OK);
  await expect(write({ fstat, present: FILE })).rejects.toMatchObject(isWrong);
  const readlink: Answer = (sftp, id) => sftp.name(id, []);
  const present = attributesOf(0o120_777);
  await expect(write({ readlink, present })).rejects.toMatchObject(isWrong);
});
