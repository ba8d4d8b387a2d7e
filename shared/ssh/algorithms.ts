/** What a connection to a host may be made with, by kind, as ssh2 takes it. */
export interface SshAlgorithms {
  kex: string[];
  cipher: string[];
  hmac: string[];
}

/** Those that are secure today, most wanted first, then those that a setting may add for old hosts. */
const KNOWN = {
  kex: {
    current: [
      'curve25519-sha256',
      'curve25519-sha256@libssh.org',
      'ecdh-sha2-nistp256',
      'ecdh-sha2-nistp384',
      'ecdh-sha2-nistp521',
      'diffie-hellman-group16-sha512',
      'diffie-hellman-group18-sha512',
      'diffie-hellman-group14-sha256',
    ],
    old: [
      'diffie-hellman-group-exchange-sha256',
      'diffie-hellman-group14-sha1',
      'diffie-hellman-group-exchange-sha1',
    ],
  },
  cipher: {
    current: [
      'aes128-gcm@openssh.com',
      'aes256-gcm@openssh.com',
      'chacha20-poly1305@openssh.com',
      'aes128-ctr',
      'aes192-ctr',
      'aes256-ctr',
    ],
    old: ['aes128-cbc', 'aes192-cbc', 'aes256-cbc'],
  },
  hmac: {
    current: [
      'hmac-sha2-256-etm@openssh.com',
      'hmac-sha2-512-etm@openssh.com',
      'hmac-sha2-256',
      'hmac-sha2-512',
    ],
    old: ['hmac-sha1-etm@openssh.com', 'hmac-sha1'],
  },
} satisfies Record<keyof SshAlgorithms, { current: string[]; old: string[] }>;

const KINDS = ['kex', 'cipher', 'hmac'] as const;
const allOf = (kind: keyof SshAlgorithms) => [...KNOWN[kind].current, ...KNOWN[kind].old];

export const CURRENT_ALGORITHMS: SshAlgorithms = {
  kex: KNOWN.kex.current,
  cipher: KNOWN.cipher.current,
  hmac: KNOWN.hmac.current,
};

/** Algorithms of all kinds, separated by commas, the preferred ones first; a problem where they are of no use. */
export function parseAlgorithms(text: string): SshAlgorithms | { problem: string } {
  const names = text.split(',').map(name => name.trim());
  const unknown = names.find(name => !KINDS.some(kind => allOf(kind).includes(name)));
  if (unknown !== undefined) return { problem: `${unknown} is none of ${listAll()}` };
  const [kex = [], cipher = [], hmac = []] = KINDS.map(kind =>
    names.filter(name => allOf(kind).includes(name)),
  );
  if (kex.length === 0 || cipher.length === 0 || hmac.length === 0)
    return { problem: 'must name a key exchange, a cipher and a MAC at least' };
  return { kex, cipher, hmac };
}

const listAll = () => KINDS.flatMap(allOf).join(', ');
