import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { userInfo } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import ssh2, { type Connection, type ServerChannel } from 'ssh2';
import type { KeyPair } from './key-pair.ts';
import { listProcesses, readEnvironment, signalProcess } from './processes.ts';

export interface Ssh2Server {
  port: number;
  username: string;
  password: string;
  /** Ends the server, its connections and what their commands left running. */
  stop(): Promise<void>;
}

/**
 * A stand-in for sshd on machines that have none, for the demo only: one login with a random
 * password, commands and shells without a terminal, no SFTP, no forwarding. Listens on 127.0.0.1.
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
    // A client that vanishes is an error here; its channels are closed either way.
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

/** Runs a command as sshd does: it outlives its channel, and finds its pipes closed then. */
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
    // Nothing of the demo's own environment: its settings are no business of the host's.
    env: {
      HOME: home,
      USER: username,
      LOGNAME: username,
      SHELL: shell,
      PATH: '/usr/local/bin:/usr/bin:/bin:/usr/games',
    },
    // A session of its own, as under sshd.
    detached: true,
  });
  const { stdin, stdout, stderr } = child;
  if (!stdin || !stdout || !stderr) throw new Error('The command has no pipes.');
  // A command may end without reading its input, and a client may leave without reading the output.
  for (const stream of [stdin, stdout, stderr, channel, channel.stderr])
    stream.on('error', () => {});
  channel.pipe(stdin);
  const write = writeInTurn(channel);
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
    // What still waits for the client's window goes first: the exit status ends both streams.
    write.afterAll(() => {
      if (signal === null) channel.exit(code !== null && code >= 0 ? code : 127);
      else channel.exit(signal.replace(/^SIG/, ''), false, '');
      channel.end();
    });
  });
}

/**
 * Lets one chunk of either output wait for the client's window at a time, its source paused. ssh2
 * 1.17 never forgets a chunk that has waited, and sends it again when the other stream waits: with
 * one at a time, these fields hold nothing that is still wanted once it is written.
 */
function writeInTurn(channel: ServerChannel) {
  const forgotten = {
    _chunk: undefined,
    _chunkcb: undefined,
    _chunkErr: undefined,
    _chunkcbErr: undefined,
  };
  let last = Promise.resolve();
  const write = (turn: { chunk: Buffer; from: Readable; to: Writable }) => {
    const { chunk, from, to } = turn;
    from.pause();
    last = last
      .then(() => new Promise<void>(settle => to.write(chunk, () => settle())))
      .then(() => {
        Object.assign(channel, forgotten);
        from.resume();
      });
  };
  write.afterAll = (then: () => void) => void last.then(then);
  return write;
}
