import { accessSync, chmodSync, constants, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { loadOrCreateKeyPair } from './key-pair.ts';
import { startSsh2Server } from './ssh2-server.ts';
import { type Sshd, startSshd } from './sshd.ts';

export interface SshHostOptions {
  /** Absolute; made when missing. Keys in it are kept, so that the host is the same at the next start. */
  directory: string;
  /** Gets each line that the server logs. */
  log: (line: string) => void;
  /** Default: a free one. */
  port?: number;
  /** Further lines of sshd_config, which win over ours. */
  lines?: string[];
}

/** An SSH server on 127.0.0.1 with one login whose home is a folder of its own. */
export interface SshHost {
  kind: 'sshd' | 'ssh2';
  host: '127.0.0.1';
  port: number;
  username: string;
  /** One of the two, in OpenSSH's format; `password` only where there is no sshd. */
  privateKey?: string;
  password?: string;
  /** `ssh-ed25519 AAAA…` */
  hostKey: string;
  home: string;
  /** What else can be done to it, where `kind` is `sshd`. */
  sshd?: Sshd;
  /** Ends the server, its connections and what their commands left running. */
  stop(): Promise<void>;
}

/**
 * Starts this machine's sshd for the current user alone, with keys, configuration and home in
 * `directory`: nothing of the machine's own SSH set-up is read or changed. Where there is no sshd, a
 * server in this process takes its place.
 */
export async function startSshHost(options: SshHostOptions): Promise<SshHost> {
  const { directory, log, port } = options;
  mkdirSync(directory, { recursive: true });
  chmodSync(directory, 0o700);
  const home = join(directory, 'home');
  mkdirSync(home, { recursive: true });
  const hostKey = loadOrCreateKeyPair(join(directory, 'host_key'));
  const program = findSshd();
  if (program === undefined) {
    log('There is no sshd on this machine: a server in this process takes its place.');
    const server = await startSsh2Server({ home, hostKey, log, port });
    return { ...server, kind: 'ssh2', host: '127.0.0.1', hostKey: hostKey.public, home };
  }
  const login = loadOrCreateKeyPair(join(directory, 'login_key'));
  const username = userInfo().username;
  writeFileSync(join(directory, 'authorized_keys'), `${login.public}\n`, { mode: 0o600 });
  writeExecutable(join(directory, 'enter'), ENTER_HOME);
  const server = await startSshd({
    program,
    directory,
    log,
    port,
    lines: [
      ...(options.lines ?? []),
      `AuthorizedKeysFile "${join(directory, 'authorized_keys')}"`,
      `AllowUsers ${username}`,
      'PasswordAuthentication no',
      'PermitRootLogin prohibit-password',
      `SetEnv "HOME=${home}"`,
      `ForceCommand "${join(directory, 'enter')}"`,
    ],
    isLeftBehind: environment => environment.HOME === home,
  });
  return {
    kind: 'sshd',
    host: '127.0.0.1',
    port: server.port,
    username,
    privateKey: login.private,
    hostKey: hostKey.public,
    home,
    sshd: server,
    stop: () => server.stop(),
  };
}

/**
 * sshd starts commands in the home that the account database names, whatever HOME says. This goes to
 * HOME first and then does what sshd would have done; each step is an exec, so no process is left
 * between, and SHLVL starts anew for shells that decide by it whether to read their start-up files.
 */
const ENTER_HOME = `#!/bin/sh
cd || exit 1
unset SHLVL
command=\${SSH_ORIGINAL_COMMAND-}
[ -n "$command" ] || exec "$SHELL" -l
unset SSH_ORIGINAL_COMMAND
exec "$SHELL" -c "$command"
`;

function writeExecutable(path: string, text: string): void {
  // Written beside and renamed: the old one may be running, and a busy file cannot be written.
  writeFileSync(`${path}.new`, text, { mode: 0o755 });
  renameSync(`${path}.new`, path);
}

/** The absolute path of sshd, which re-executes itself by it; undefined where there is none. */
export function findSshd(): string | undefined {
  const folders = ['/usr/sbin', '/usr/local/sbin', '/sbin', '/usr/bin', '/opt/homebrew/sbin'];
  return folders.map(folder => join(folder, 'sshd')).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
