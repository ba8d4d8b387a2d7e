import type { AddressInfo } from 'node:net';
import ssh2, { type Connection, type FileEntry, type SFTPWrapper } from 'ssh2';
import { answerCommands } from './answer-commands.ts';

export interface SftpServerOptions {
  /** In OpenSSH's format. */
  hostKey: string;
  password: string;
  /** What lies in a directory: each step is the answer to one request of the client. */
  list(path: string): AsyncIterator<FileEntry[]>;
}

export interface SftpServer {
  port: number;
  /** Ends every connection, as a host that goes down. */
  disconnect(): void;
  stop(): Promise<void>;
}

/** An SSH server that lets in one password, lists directories as the test wants it, and runs `echo`. */
export async function startSftpServer(options: SftpServerOptions): Promise<SftpServer> {
  const open = new Set<Connection>();
  const server = new ssh2.Server({ hostKeys: [options.hostKey] }, client => {
    open.add(client);
    client.on('close', () => open.delete(client));
    client.on('error', () => {});
    client.on('authentication', context => {
      if (context.method === 'password' && context.password === options.password) context.accept();
      else context.reject(['password']);
    });
    client.on('session', accept => {
      const session = accept();
      answerCommands(session);
      session.on('sftp', acceptSftp => serveDirectories(acceptSftp(), options));
    });
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const disconnect = () => {
    for (const connection of open) connection.end();
  };
  return {
    port: (server.address() as AddressInfo).port,
    disconnect,
    async stop() {
      const closed = new Promise(resolve => server.close(resolve));
      disconnect();
      await closed;
    },
  };
}

/** draft-ietf-secsh-filexfer-02, as far as listing goes: each request is answered when the one before it is. */
function serveDirectories(sftp: SFTPWrapper, { list }: SftpServerOptions): void {
  const { EOF } = ssh2.utils.sftp.STATUS_CODE;
  const handles: AsyncIterator<FileEntry[]>[] = [];
  let last = Promise.resolve();
  sftp.on('OPENDIR', (id, path) => {
    const handle = Buffer.alloc(4);
    handle.writeUInt32BE(handles.push(list(path)) - 1);
    sftp.handle(id, handle);
  });
  sftp.on('READDIR', (id, handle) => {
    last = last.then(async () => {
      const step = await handles[handle.readUInt32BE()]?.next();
      if (!step || step.done) sftp.status(id, EOF);
      else sftp.name(id, step.value);
    });
  });
}

/** A file as a server lists it. */
export const makeEntry = (filename: string): FileEntry => ({
  filename,
  longname: '',
  attrs: { mode: 0o100_644, uid: 0, gid: 0, size: 1, atime: 0, mtime: 1_700_000_000 },
});
