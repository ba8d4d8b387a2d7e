import { chownSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findSshd } from '../../../servers/ssh-host.ts';
import { type Account, makeAccount } from '../clients/accounts.ts';
import { makeTempDir } from '../files/temp-dir.ts';
import { startTestSshd, type TestSshd } from './sshd.ts';

/** A host whose PAM asks for one-time codes. */
export interface CodeHost {
  account: Account;
  sshd: TestSshd;
  /** Each is taken once. */
  nextCode(): string;
  stop(): Promise<void>;
}

const CODES = 10;
let made = 0;

/**
 * Starts an sshd with a PAM service of its own, named by the link through which sshd is called. The codes are emergency
 * ones of google-authenticator, which depend on no clock. `asksPassword`: PAM asks for the password first. Needs root.
 */
export async function startCodeHost(
  options: { lines?: string[]; asksPassword?: boolean } = {},
): Promise<CodeHost> {
  const service = `windlass-t-${process.pid}-${++made}`;
  const directory = makeTempDir('pam');
  const program = join(directory.path, service);
  const config = join('/etc/pam.d', service);
  const account = await makeAccount();
  const remove = async () => {
    rmSync(config, { force: true });
    directory.remove();
    await account.remove();
  };
  try {
    symlinkSync(findSshd() ?? '', program);
    const codes = Array.from({ length: CODES }, (_, n) => String(10_000_001 + n));
    const secrets = join(directory.path, 'secrets');
    mkdirSync(secrets, { mode: 0o700 });
    const secret = join(secrets, account.username);
    writeFileSync(secret, ['JBSWY3DPEHPK3PXP', '" TOTP_AUTH', ...codes, ''].join('\n'), {
      mode: 0o400,
    });
    chownSync(secret, 0, 0);
    const lines = [
      ...(options.asksPassword ? ['auth required pam_unix.so'] : []),
      `auth required pam_google_authenticator.so secret=${secrets}/\${USER} user=root`,
      'account required pam_unix.so',
      'session required pam_unix.so',
    ];
    writeFileSync(config, `${lines.join('\n')}\n`);
    const sshd = await startTestSshd({
      account,
      program,
      lines: [
        ...(options.lines ?? []),
        'UsePAM yes',
        'KbdInteractiveAuthentication yes',
        'PasswordAuthentication no',
      ],
    });
    return {
      account,
      sshd,
      nextCode: () => codes.shift() ?? '',
      stop: async () => {
        await sshd.stop();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}
