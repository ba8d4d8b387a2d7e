import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { isExecutable } from '../shared/process/is-executable.ts';
import { loadOrCreateKeyPair } from './key-pair.ts';
import { startSsh2Server } from './ssh2-server.ts';
import { type Sshd, startSshd } from './sshd.ts';

interface SshHostOptions {
  /** Absolute path. Stores the keys, which the next start uses again. */
  directory: string;
  /** Called for each line of the server's log. */
  log: (line: string) => void;
  /** Default: a free one. */
  port?: number;
  /** Further lines of sshd_config. They override the default ones. */
  lines?: string[];
}

/** An SSH server on 127.0.0.1 with one account, whose home is a separate folder. */
export interface SshHost {
  kind: 'sshd' | 'ssh2';
  host: '127.0.0.1';
  port: number;
  username: string;
  /** In OpenSSH's format. There is either this or, without sshd, a password. */
  privateKey?: string;
  password?: string;
  /** `ssh-ed25519 AAAA…` */
  hostKey: string;
  home: string;
  /** The server itself, if `kind` is `sshd`. */
  sshd?: Sshd;
  /** Ends the server, its connections and the processes that commands left. */
  stop(): Promise<void>;
}

/**
 * Starts this machine's sshd for the current user, with keys, configuration and home in `directory`: neither uses nor
 * changes the machine's own SSH configuration. Without sshd it starts a server in this process instead.
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
    log('There is no sshd on this machine: using a server in this process.');
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
 * sshd starts commands in the home of the account database, regardless of HOME. This script changes to HOME and does
 * what sshd would do. `exec` adds no process; SHLVL is unset, as shells decide by it whether to read their start-up
 * files.
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
  // Replaces the file by a rename, because a running one cannot be written.
  writeFileSync(`${path}.new`, text, { mode: 0o755 });
  renameSync(`${path}.new`, path);
}

/** The absolute path of sshd, which it needs to re-execute itself; undefined if there is none. */
export function findSshd(): string | undefined {
  const folders = ['/usr/sbin', '/usr/local/sbin', '/sbin', '/usr/bin', '/opt/homebrew/sbin'];
  return folders.map(folder => join(folder, 'sshd')).find(isExecutable);
}
