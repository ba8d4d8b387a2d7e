import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import ssh2 from 'ssh2';

/** An OpenSSH key pair, each part one text without a final newline. */
export interface KeyPair {
  private: string;
  public: string;
}

/** Reads the key pair at `path` and `path.pub`, or makes an ed25519 one there. */
export function loadOrCreateKeyPair(path: string): KeyPair {
  if (!existsSync(path) || !existsSync(`${path}.pub`)) {
    const made = makeKeyPair();
    writeFileSync(`${path}.new`, made.private, { mode: 0o600 });
    writeFileSync(`${path}.pub`, `${made.public}\n`);
    // Last: a private key that is there has its public half.
    renameSync(`${path}.new`, path);
  }
  const [type, key] = readFileSync(`${path}.pub`, 'utf8').trim().split(' ');
  return { private: readFileSync(path, 'utf8').trim(), public: `${type} ${key}` };
}

/** ssh2 1.17 makes a broken pair where the public key begins with a zero byte, one in 256. */
function makeKeyPair(): KeyPair {
  for (;;) {
    const made = ssh2.utils.generateKeyPairSync('ed25519', { comment: 'windlass' });
    if (!(ssh2.utils.parseKey(made.private) instanceof Error)) return made;
  }
}
