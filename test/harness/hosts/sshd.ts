import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadOrCreateKeyPair } from '../../../servers/key-pair.ts';
import { findSshd, startSshHost } from '../../../servers/ssh-host.ts';
import { type Sshd, startSshd } from '../../../servers/sshd.ts';
import type { Account } from '../clients/accounts.ts';
import { makeTempDir } from '../files/temp-dir.ts';

export interface TestSshd extends Sshd {
  host: '127.0.0.1';
  username: string;
  /** In OpenSSH's format. */
  privateKey: string;
  /** Where the login is a throwaway account. */
  password?: string;
  /** `ssh-ed25519 AAAA…` */
  hostKey: string;
  home: string;
  /** What sshd has logged so far. */
  log(): string;
}

/**
 * Starts a real sshd on a free port. The login is the throwaway account, by key and password, else the current user, by
 * key, with a temporary home. `program` is another sshd, for an account. `lines` win over the harness's sshd_config.
 * Needs sshd: see missingPrograms().
 */
export async function startTestSshd(
  options: { account?: Account; lines?: string[]; program?: string } = {},
): Promise<TestSshd> {
  const directory = makeTempDir('sshd');
  const lines: string[] = [];
  const log = (line: string) => lines.push(line);
  const start = options.account ? startForAccount(options.account) : startForUser();
  const { sshd, ...login } = await start.catch(error => {
    directory.remove();
    throw error;
  });

  async function startForUser() {
    const path = join(directory.path, 'host');
    const host = await startSshHost({ directory: path, log, lines: options.lines });
    if (!host.sshd || !host.privateKey) throw new Error('There is no sshd; see missingPrograms().');
    const { username, privateKey, hostKey, home } = host;
    return { sshd: host.sshd, username, privateKey, hostKey, home };
  }

  async function startForAccount(account: Account) {
    const program = options.program ?? findSshd();
    if (program === undefined) throw new Error('There is no sshd; see missingPrograms().');
    const key = loadOrCreateKeyPair(join(directory.path, 'login_key'));
    const hostKey = loadOrCreateKeyPair(join(directory.path, 'host_key')).public;
    // sshd reads it as the account.
    const keys = join(directory.path, 'authorized_keys');
    writeFileSync(keys, `${key.public}\n`, { mode: 0o644 });
    const sshd = await startSshd({
      program,
      directory: directory.path,
      log,
      lines: [
        ...(options.lines ?? []),
        `AuthorizedKeysFile "${keys}"`,
        `AllowUsers ${account.username}`,
        'PasswordAuthentication yes',
      ],
    });
    const { username, password, home } = account;
    return { sshd, username, password, privateKey: key.private, hostKey, home };
  }

  return {
    ...login,
    host: '127.0.0.1',
    port: sshd.port,
    get pid() {
      return sshd.pid;
    },
    log: () => lines.join('\n'),
    down: () => sshd.down(),
    up: () => sshd.up(),
    disconnect: () => sshd.disconnect(),
    async stop() {
      await sshd.stop();
      directory.remove();
    },
  };
}
