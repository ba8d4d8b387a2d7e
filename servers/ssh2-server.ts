import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { userInfo } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import ssh2, { type Connection, type ServerChannel } from 'ssh2';
import type { KeyPair } from './key-pair.ts';
import { listProcesses, readEnvironment, signalProcess } from './processes.ts';

interface Ssh2Server {
  port: number;
  username: string;
  password: string;
  /** Ends the server, its connections and the processes that commands left. */
  stop(): Promise<void>;
}

/**
 * A minimal SSH server for machines without sshd: one account with a random password, commands and shells without a
 * terminal, no SFTP, no forwarding. Listens on 127.0.0.1.
 */
export async function startSsh2Server(options: {
  home: string;
  hostKey: KeyPair;
  log: (line: string) => void;
  port?: number;
}): Promise<Ssh2Server> {
  const { home, hostKey, log } = options;
  const { username, shell } = userInfo();
  const password = randomBytes(24).toString('base64url');
  const connections = new Set<Connection>();
  const server = new ssh2.Server({ hostKeys: [hostKey.private] }, client => {
    connections.add(client);
    client.on('close', () => connections.delete(client));
    // A lost connection is an error, too; its channels are closed anyway.
    client.on('error', error => log(`connection: ${error.message}`));
    client.on('authentication', context => {
      if (context.method !== 'password') return context.reject(['password']);
      const fits = isSame(context.username, username) && isSame(context.password, password);
      log(`${fits ? 'Accepted' : 'Failed'} password for ${JSON.stringify(context.username)}`);
      return fits ? context.accept() : context.reject(['password']);
    });
    client.on('session', acceptSession => {
      const session = acceptSession();
      const start = (args: string[], channel: ServerChannel) =>
        runCommand({ shell: shell ?? '/bin/sh', args, home, channel });
      session.on('exec', (accept, _reject, info) => start(['-c', info.command], accept()));
      session.on('shell', accept => start(['-l'], accept()));
    });
  });
  await new Promise<void>((settle, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', settle);
  });
  const { port } = server.address() as AddressInfo;
  log(`Server listening on 127.0.0.1 port ${port}.`);
  return {
    port,
    username,
    password,
    async stop() {
      const closed = new Promise(settle => server.close(settle));
      for (const connection of connections) connection.end();
      await closed;
      for (const { pid } of listProcesses()) {
        if (pid !== process.pid && readEnvironment(pid).HOME === home)
          signalProcess(pid, 'SIGKILL');
      }
    },
  };
}

function isSame(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Runs a command like sshd: it continues after its channel is closed, with closed pipes. */
function runCommand(run: {
  shell: string;
  args: string[];
  home: string;
  channel: ServerChannel;
}): void {
  const { shell, args, home, channel } = run;
  const { username } = userInfo();
  const child: ChildProcess = spawn(shell, args, {
    cwd: home,
    // Without this process's environment, which contains settings of Windlass.
    env: {
      HOME: home,
      USER: username,
      LOGNAME: username,
      SHELL: shell,
      PATH: '/usr/local/bin:/usr/bin:/bin:/usr/games',
    },
    // A separate session, as under sshd.
    detached: true,
  });
  const { stdin, stdout, stderr } = child;
  if (!stdin || !stdout || !stderr) throw new Error('The command has no pipes.');
  // A command may not read all its input, and a client not all the output.
  for (const stream of [stdin, stdout, stderr, channel, channel.stderr])
    stream.on('error', () => {});
  channel.pipe(stdin);
  const write = writeOneByOne(channel);
  stdout.on('data', chunk => write({ chunk, from: stdout, to: channel }));
  stderr.on('data', chunk => write({ chunk, from: stderr, to: channel.stderr }));
  channel.once('close', () => {
    stdin.destroy();
    stdout.destroy();
    stderr.destroy();
  });
  child.once('error', error => {
    channel.stderr.write(`${shell}: ${error.message}\n`);
  });
  // 'close' comes after both outputs have ended, or after 'error'.
  child.once('close', (code, signal) => {
    // Sends pending output first, because the exit status ends both streams.
    write.afterAll(() => {
      if (signal === null) channel.exit(code !== null && code >= 0 ? code : 127);
      else channel.exit(signal.replace(/^SIG/, ''), false, '');
      channel.end();
    });
  });
}

/**
 * Writes one chunk of either output at a time, and pauses its source until the client's window accepts it. ssh2 1.17
 * does not clear a chunk that had to wait, and sends it again when the other stream waits; here it is cleared after
 * each write.
 */
function writeOneByOne(channel: ServerChannel) {
  const pendingChunks = {
    _chunk: undefined,
    _chunkcb: undefined,
    _chunkErr: undefined,
    _chunkcbErr: undefined,
  };
  let last = Promise.resolve();
  const write = (output: { chunk: Buffer; from: Readable; to: Writable }) => {
    const { chunk, from, to } = output;
    from.pause();
    last = last
      .then(() => new Promise<void>(settle => to.write(chunk, () => settle())))
      .then(() => {
        Object.assign(channel, pendingChunks);
        from.resume();
      });
  };
  write.afterAll = (then: () => void) => void last.then(then);
  return write;
}
