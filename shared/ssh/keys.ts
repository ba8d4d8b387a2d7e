import { createHash } from 'node:crypto';

/** The fingerprint `SHA256:…` that OpenSSH prints, of a host key in the wire format of RFC 4253. */
export function fingerprint(key: Buffer): string {
  return `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=$/, '')}`;
}

/** The wire format of a key line such as `ssh-ed25519 AAAA… comment`. */
export function keyBytes(line: string): Buffer {
  return Buffer.from(line.trim().split(/\s+/)[1] ?? '', 'base64');
}

/** The key line, without comment, of a key in wire format. */
export function keyLine(key: Buffer): string {
  const type = key.subarray(4, 4 + key.readUInt32BE(0)).toString('latin1');
  return `${type} ${key.toString('base64')}`;
}

/** The signature algorithms of the pinned keys, to offer to their host. */
export function signatureAlgorithms(lines: string[]): string[] {
  return lines.flatMap(line => {
    const type = line.trim().split(/\s+/)[0] ?? '';
    return type === 'ssh-rsa' ? ['rsa-sha2-512', 'rsa-sha2-256'] : [type];
  });
}
