import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export type KeyType = 'ed25519' | 'ecdsa' | 'rsa';
const BITS = { ed25519: [], ecdsa: ['-b', '256'], rsa: ['-b', '2048'] };

const keygen = (...args: string[]) => execFileSync('ssh-keygen', ['-q', ...args]);
let made = 0;

/** A key pair that ssh-keygen makes, in the files `path` and `path.pub`. */
export interface KeyFile {
  path: string;
  /** `ssh-ed25519 AAAA…` */
  public: string;
}

export function makeKeyFile(directory: string, type: KeyType = 'ed25519', bits?: string): KeyFile {
  const path = join(directory, `${type}-${++made}`);
  keygen('-t', type, ...(bits ? ['-b', bits] : BITS[type]), '-N', '', '-C', '', '-f', path);
  return { path, public: readLine(`${path}.pub`) };
}

/** Signs a key as an authority does, with further options of ssh-keygen; the line of the certificate, which is beside the key. */
export function certify(authority: KeyFile, key: KeyFile, ...options: string[]): string {
  keygen('-s', authority.path, '-I', 'a test', ...options, `${key.path}.pub`);
  return readLine(`${key.path}-cert.pub`);
}

/** The same for a host of these names. */
export const certifyHost = (authority: KeyFile, key: KeyFile, names: string, ...more: string[]) =>
  certify(authority, key, '-h', '-n', names, ...more);

/** Lines of sshd_config for a host that has this key and its certificate. */
export const certifiedHost = ({ path }: KeyFile) => [
  `HostKey "${path}"`,
  `HostCertificate "${path}-cert.pub"`,
];

const readLine = (path: string) =>
  readFileSync(path, 'utf8').trim().split(' ').slice(0, 2).join(' ');
