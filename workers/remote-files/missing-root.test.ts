import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import ssh2 from 'ssh2';
import { expect, onTestFinished, test } from 'vitest';
import { makeKeyPair } from '../../servers/key-pair.ts';
import { writeText } from '../../test/harness/hosts/remote-files.ts';
import { openConnection } from '../ssh/open-connection.ts';
import { RemoteSession } from '../ssh/remote-session.ts';

const { NO_SUCH_FILE } = ssh2.utils.sftp.STATUS_CODE;

/** A session on a host that says of each path that nothing is there; the paths that it was asked for. */
async function openBareHost() {
  const asked: string[] = [];
  const server = new ssh2.Server({ hostKeys: [makeKeyPair().private] }, host => {
    host.on('error', () => {});
    host.on('authentication', context => context.accept());
    host.on('session', accept =>
      accept().on('sftp', acceptSftp => {
        const sftp = acceptSftp();
        const deny = (id: number, path: string) => {
          asked.push(path);
          sftp.status(id, NO_SUCH_FILE);
        };
        sftp.on('STAT', deny).on('LSTAT', deny).on('MKDIR', deny).on('REMOVE', deny);
      }),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const client = new ssh2.Client();
  onTestFinished(() => void client.destroy());
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const options = { username: 'me', password: 'x', hostVerifier: () => true };
  await openConnection(client, socket, { options, signal: new AbortController().signal });
  const settings = { spoolLimitBytes: 0, shell: undefined };
  return { asked, session: new RemoteSession({ client, banner: '' }, settings) };
}

test('on a host that has no root no directory is made', { timeout: 20_000 }, async () => {
  const { session, asked } = await openBareHost();
  await expect(writeText(session, '/a/b/file', 'x', { parents: true })).rejects.toMatchObject({
    code: 'not_found',
  });
  expect(asked.filter(path => path === '/')).toHaveLength(1);
});
