import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { findFreePort } from './free-port.ts';
import {
  awaitExit,
  endWithThisProcess,
  findDescendants,
  listProcesses,
  readEnvironment,
  signalProcess,
} from './processes.ts';

interface SshdOptions {
  /** Absolute path of sshd. */
  program: string;
  /** Contains `host_key`, in OpenSSH's format. The configuration is written there, too. */
  directory: string;
  /** Lines of sshd_config. They override the default ones. */
  lines: string[];
  log: (line: string) => void;
  /** Default: a free one. */
  port?: number;
  /** Whether a process with this environment belongs to the host and ends with it. */
  isLeftBehind?: (environment: Record<string, string>) => boolean;
}

export interface Sshd {
  readonly port: number;
  readonly pid: number;
  /** Ends the listener and every connection. Commands may continue. */
  down(): Promise<void>;
  /** Listens on the same port again. */
  up(): Promise<void>;
  /** Ends every connection. Still accepts new ones. */
  disconnect(): void;
  /** Like `down`; also ends the processes that commands left. */
  stop(): Promise<void>;
}

/** Starts an sshd on 127.0.0.1. Rejects with its log if it does not start. */
export async function startSshd(options: SshdOptions): Promise<Sshd> {
  const first = await listenOnSomePort(options);
  const { port } = first;
  let child = first.child;
  const server: Sshd = {
    port,
    get pid() {
      return child.pid ?? 0;
    },
    async down() {
      // A stopped listener accepts no connection while the existing ones are listed.
      child.kill('SIGSTOP');
      const connections = findConnections(child, options.program);
      child.kill('SIGKILL');
      for (const pid of connections) signalProcess(pid, 'SIGKILL');
      await awaitExit(child);
    },
    async up() {
      child = await launch(options, port);
    },
    disconnect() {
      for (const pid of findConnections(child, options.program)) signalProcess(pid, 'SIGKILL');
    },
    async stop() {
      await server.down();
      const isLeftBehind = options.isLeftBehind;
      if (isLeftBehind) endLeftBehind(isLeftBehind);
    },
  };
  return server;
}

/** The sshd processes of connections: the listener's descendants that are sshd themselves, by the name that it was called by. */
function findConnections(listener: ChildProcess, program: string): number[] {
  if (listener.pid === undefined) return [];
  const name = basename(program);
  return findDescendants([listener.pid])
    .filter(entry => basename(entry.command.split(/[ :]/, 1)[0] ?? '').startsWith(name))
    .map(entry => entry.pid);
}

function endLeftBehind(isLeftBehind: (environment: Record<string, string>) => boolean): void {
  for (const { pid } of listProcesses()) {
    if (pid !== process.pid && isLeftBehind(readEnvironment(pid))) signalProcess(pid, 'SIGKILL');
  }
}

async function listenOnSomePort(
  options: SshdOptions,
): Promise<{ port: number; child: ChildProcess }> {
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await findFreePort());
    try {
      return { port, child: await launch(options, port) };
    } catch (error) {
      // Another process may take the port before sshd.
      const taken = error instanceof Error && error.message.includes('Address already in use');
      if (!taken || options.port !== undefined || attempt === 5) throw error;
    }
  }
}

async function launch(options: SshdOptions, port: number): Promise<ChildProcess> {
  const { program, directory, log } = options;
  if (port === 22) throw new Error('Port 22 is the machine’s own.');
  const config = join(directory, 'sshd_config');
  writeFileSync(config, writeConfig(options, port), { mode: 0o600 });
  const isRoot = userInfo().uid === 0;
  // sshd requires this folder for privilege separation.
  if (isRoot) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  const child = spawn(program, ['-D', '-e', '-f', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
    cwd: '/',
  });
  endWithThisProcess(child);
  const lines: string[] = [];
  const listening = new Promise<void>(settle => {
    createInterface({ input: child.stderr }).on('line', line => {
      log(line);
      // The error of a failed start needs only the first lines.
      if (lines.length < 50) lines.push(line);
      if (line.includes(`Server listening on 127.0.0.1 port ${port}`)) settle();
    });
  });
  const failed = new Promise<never>((_, reject) => {
    child.once('error', reject);
    void awaitExit(child).then(({ code, signal }) => {
      reject(new Error(`sshd ended with ${signal ?? code}:\n${lines.join('\n')}`));
    });
  });
  await Promise.race([listening, failed]);
  failed.catch(() => {});
  return child;
}

function writeConfig(options: SshdOptions, port: number): string {
  return [
    ...options.lines,
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey "${join(options.directory, 'host_key')}"`,
    'PidFile none',
    `UsePAM ${isLocked(userInfo().username) ? 'yes' : 'no'}`,
    'KbdInteractiveAuthentication no',
    // The directory may be in one that others can write, such as /tmp.
    'StrictModes no',
    'PermitUserRC no',
    'PrintMotd no',
    'PrintLastLog no',
    'AcceptEnv LANG LC_*',
    // sshd refuses two of one name.
    ...(options.lines.some(line => /^subsystem\b/i.test(line))
      ? []
      : [`Subsystem sftp ${findSftpServer()}`]),
    'LogLevel INFO',
    '',
  ].join('\n');
}

/** The external SFTP server, if installed: a forced command cannot start the internal one. */
export function findSftpServer(): string {
  const folders = ['/usr/lib/openssh', '/usr/libexec/openssh', '/usr/lib/ssh', '/usr/libexec'];
  const paths = folders.map(folder => join(folder, 'sftp-server'));
  return paths.find(path => existsSync(path)) ?? 'internal-sftp';
}

/** Whether the account's password is locked: then sshd accepts no key without PAM. Only root can read it. */
function isLocked(username: string): boolean {
  try {
    const entry = readFileSync('/etc/shadow', 'utf8')
      .split('\n')
      .find(line => line.startsWith(`${username}:`));
    return entry?.split(':')[1]?.startsWith('!') ?? false;
  } catch {
    return false;
  }
}
