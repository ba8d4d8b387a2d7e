import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import ssh2 from 'ssh2';
import { onTestFinished } from 'vitest';
import { makeKeyPair } from '../../../servers/key-pair.ts';
import { openConnection } from '../../../workers/ssh/open-connection.ts';
import { RemoteSession } from '../../../workers/ssh/remote-session.ts';

/** A worker's session on a host whose SFTP server does what `serve` makes it do, until the end of the test. */
export async function openLyingSftp(
  serve: (sftp: ssh2.SFTPWrapper) => void,
): Promise<RemoteSession> {
  const ssh = new ssh2.Server({ hostKeys: [makeKeyPair().private] }, host => {
    host.on('error', () => {});
    host.on('authentication', context => context.accept());
    host.on('session', accept => accept().on('sftp', acceptSftp => serve(acceptSftp())));
  });
  const server = createServer({ noDelay: true }, socket => ssh.injectSocket(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const client = new ssh2.Client();
  onTestFinished(() => void client.destroy());
  const { port } = server.address() as AddressInfo;
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  const options = { username: 'me', password: 'x', hostVerifier: () => true };
  await openConnection(client, socket, { options, signal: new AbortController().signal });
  return new RemoteSession({ client, banner: '' }, { spoolLimitBytes: 0, shell: undefined });
}
