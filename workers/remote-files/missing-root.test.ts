import ssh2 from 'ssh2';
import { expect, test } from 'vitest';
import { openLyingSftp } from '../../test/harness/hosts/lying-sftp.ts';
import { writeText } from '../../test/harness/hosts/remote-files.ts';

const { NO_SUCH_FILE } = ssh2.utils.sftp.STATUS_CODE;

/** A session on a host that says of each path that nothing is there; the paths that it was asked for. */
async function openBareHost() {
  const asked: string[] = [];
  const session = await openLyingSftp(sftp => {
    const deny = (id: number, path: string) => {
      asked.push(path);
      sftp.status(id, NO_SUCH_FILE);
    };
    sftp.on('STAT', deny).on('LSTAT', deny).on('MKDIR', deny).on('REMOVE', deny);
  });
  return { asked, session };
}

test('on a host that has no root no directory is made', { timeout: 20_000 }, async () => {
  const { session, asked } = await openBareHost();
  await expect(writeText(session, '/a/b/file', 'x', { parents: true })).rejects.toMatchObject({
    code: 'not_found',
  });
  expect(asked.filter(path => path === '/')).toHaveLength(1);
});
