import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import ssh2 from 'ssh2';

/** An OpenSSH key pair in text form, without final newlines. */
export interface KeyPair {
  private: string;
  public: string;
}

/** Loads the key pair at `path` and `path.pub`, or creates an ed25519 one there. */
export function loadOrCreateKeyPair(path: string): KeyPair {
  if (!existsSync(path) || !existsSync(`${path}.pub`)) {
    const pair = makeKeyPair();
    writeFileSync(`${path}.new`, pair.private, { mode: 0o600 });
    writeFileSync(`${path}.pub`, `${pair.public}\n`);
    // Last, so that a private key never exists without its public key.
    renameSync(`${path}.new`, path);
  }
  const [type, key] = readFileSync(`${path}.pub`, 'utf8').trim().split(' ');
  return { private: readFileSync(path, 'utf8').trim(), public: `${type} ${key}` };
}

/**
 * A new ed25519 pair. Tries again where the public key begins with a zero byte, one in 256: ssh2 1.17 fails with these.
 */
export function makeKeyPair(): KeyPair {
  for (;;) {
    const pair = ssh2.utils.generateKeyPairSync('ed25519', { comment: 'windlass' });
    if (!(ssh2.utils.parseKey(pair.private) instanceof Error)) return pair;
  }
}
