import type { AddressInfo } from 'node:net';
import ssh2, { type Connection } from 'ssh2';
import { fingerprint, keyBytes } from '../../../shared/ssh/keys.ts';
import { answerCommands } from '../hosts/answer-commands.ts';

/** An SSH server that lets in one password and keeps a record of all that is tried. */
export interface RecordingServer {
  port: number;
  /** Connections so far. */
  readonly connections: number;
  /** Those that are open now. */
  readonly open: number;
  /** Every attempt to log in: how, as whom, and the password where there was one. */
  readonly attempts: { method: string; username: string; password?: string }[];
  /** Closes the connections that are open. */
  hangUp(): void;
  stop(): Promise<void>;
}

export async function startRecordingServer(options: {
  hostKey: string;
  password?: string;
}): Promise<RecordingServer> {
  const attempts: RecordingServer['attempts'] = [];
  const open = new Set<Connection>();
  let connections = 0;
  const server = new ssh2.Server({ hostKeys: [options.hostKey] }, client => {
    connections++;
    open.add(client);
    client.on('close', () => open.delete(client));
    client.on('error', () => {});
    client.on('authentication', context => {
      const { method, username } = context;
      const password = context.method === 'password' ? context.password : undefined;
      attempts.push({ method, username, ...(password === undefined ? {} : { password }) });
      if (password !== undefined && password === options.password) context.accept();
      else context.reject(['password', 'publickey']);
    });
    client.on('session', accept => answerCommands(accept()));
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    get open() {
      return open.size;
    },
    attempts,
    hangUp() {
      for (const connection of open) connection.end();
    },
    async stop() {
      const closed = new Promise(resolve => server.close(resolve));
      for (const connection of open) connection.end();
      await closed;
    },
  };
}

/** `SHA256:…` of a key line, as ssh-keygen -l prints it. */
export const fingerprintOf = (line: string) => fingerprint(keyBytes(line));
