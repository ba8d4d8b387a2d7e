import { createECDH, randomBytes } from 'node:crypto';
import type { SshAlgorithms } from '../../shared/ssh/algorithms.ts';
import { WireReader, wireNumber, wireString, wireUint32 } from '../../shared/ssh/wire.ts';
import { readable } from './host-words.ts';

/** RFC 4250, 4.1, and RFC 8308, 2.3. */
const DISCONNECT = 1;
const KEXINIT = 20;
const KEX_INIT = 30;
const KEX_REPLY = 31;
/** Ignore, unimplemented, debug, and extensions. */
const PASSED_OVER = [2, 3, 4, 7];

const BY_APPLICATION = 11;
const VERSION = 'SSH-2.0-Windlass\r\n';
/** RFC 4253, 4.2 and 6.1; OpenSSH's lines before its version may be as long as 8 KiB. */
const MAX_LINE = 8_192;
const MAX_PACKET = 35_000;

const HOST_KEYS = [
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'rsa-sha2-512',
  'rsa-sha2-256',
].map(name => `${name}-cert-v01@openssh.com`);

/** The client's first message of each key exchange. No key is ever agreed on, so any number will do. */
const OPENINGS: Record<string, () => Buffer> = {
  'curve25519-sha256': () => wireString(randomBytes(32)),
  'curve25519-sha256@libssh.org': () => wireString(randomBytes(32)),
  'ecdh-sha2-nistp256': () => wireString(createECDH('prime256v1').generateKeys()),
  'ecdh-sha2-nistp384': () => wireString(createECDH('secp384r1').generateKeys()),
  'ecdh-sha2-nistp521': () => wireString(createECDH('secp521r1').generateKeys()),
  // Less than the prime of each.
  ...Object.fromEntries(
    ['group14-sha256', 'group16-sha512', 'group18-sha512', 'group14-sha1'].map(group => [
      `diffie-hellman-${group}`,
      () => wireNumber(randomBytes(255)),
    ]),
  ),
};

/** What the host has shown: its certificate in wire format, or that it has none. */
export interface Shown {
  certificate: Buffer | undefined;
}

/**
 * The beginning of an SSH connection up to the host's certificate, without I/O. Nothing is secret and no host signature
 * is verified: anybody may show a certificate, which is public.
 */
export class CertificateHandshake {
  readonly #algorithms: SshAlgorithms;
  readonly #send: (bytes: Buffer) => void;
  #input: Buffer = Buffer.alloc(0);
  #isIdentified = false;
  #isOpened = false;

  /** `send`: to the host. */
  constructor(algorithms: SshAlgorithms, send: (bytes: Buffer) => void) {
    this.#algorithms = algorithms;
    this.#send = send;
    send(Buffer.from(VERSION));
  }

  /** Takes bytes of the host; undefined until it has shown something. Throws if it never will. */
  take(bytes: Buffer): Shown | undefined {
    this.#input = Buffer.concat([this.#input, bytes]);
    while (!this.#isIdentified) {
      const line = this.#takeLine();
      if (line === undefined) return undefined;
      if (line.startsWith('SSH-')) this.#identify(line);
    }
    for (let message = this.#takeMessage(); message; message = this.#takeMessage()) {
      const shown = this.#read(message);
      if (!shown) continue;
      const words = ['host certificate', ''].map(wireString);
      this.#sendMessage(byte(DISCONNECT), wireUint32(BY_APPLICATION), ...words);
      return shown;
    }
    return undefined;
  }

  #takeLine(): string | undefined {
    const end = this.#input.indexOf('\n');
    if (end > MAX_LINE || (end < 0 && this.#input.length > MAX_LINE))
      throw new Error('the host speaks no SSH');
    if (end < 0) return undefined;
    const line = this.#input.toString('latin1', 0, end);
    this.#input = this.#input.subarray(end + 1);
    return line;
  }

  #identify(line: string): void {
    if (!/^SSH-(2\.0|1\.99)-/.test(line)) throw new Error('the host speaks no SSH 2');
    this.#isIdentified = true;
    const { cipher, hmac } = this.#algorithms;
    const lists = [Object.keys(OPENINGS), HOST_KEYS, cipher, cipher, hmac, hmac];
    const names = [...lists, ['none'], ['none'], [], []].map(list => wireString(list.join(',')));
    this.#sendMessage(byte(KEXINIT), randomBytes(16), ...names, Buffer.alloc(5));
  }

  /** RFC 4253, 6, without MAC: the content of the next packet. */
  #takeMessage(): Buffer | undefined {
    if (this.#input.length < 5) return undefined;
    const [length, padding] = [this.#input.readUInt32BE(0), this.#input.readUInt8(4)];
    if (length > MAX_PACKET || length < padding + 2) throw new Error('the host sent a bad packet');
    if (this.#input.length < 4 + length) return undefined;
    const message = this.#input.subarray(5, 4 + length - padding);
    this.#input = this.#input.subarray(4 + length);
    return message;
  }

  #read(message: Buffer): Shown | undefined {
    const type = message.readUInt8(0);
    const reader = new WireReader(message.subarray(1));
    if (PASSED_OVER.includes(type)) return undefined;
    if (type === KEXINIT) return this.#open(reader);
    if (type === KEX_REPLY) return { certificate: reader.string() };
    if (type !== DISCONNECT) throw new Error(`the host sent the message ${type} too early`);
    reader.uint32();
    throw new Error(`the host closed the connection (${readable(reader.text())})`);
  }

  /** Each is the first of the client's that the server has, too (RFC 4253, 7.1). */
  #open(reader: WireReader): Shown | undefined {
    // Each costs a key, which takes a millisecond.
    if (this.#isOpened) throw new Error(`the host sent the message ${KEXINIT} too often`);
    this.#isOpened = true;
    reader.position = 16;
    const [kex, hostKeys] = [reader.names(), reader.names()];
    if (!HOST_KEYS.some(name => hostKeys.includes(name))) return { certificate: undefined };
    const chosen = Object.keys(OPENINGS).find(name => kex.includes(name));
    const opening = OPENINGS[chosen ?? ''];
    if (!opening) throw new Error('no matching key exchange algorithm');
    this.#sendMessage(byte(KEX_INIT), opening());
    return undefined;
  }

  #sendMessage(...parts: Buffer[]): void {
    const message = Buffer.concat(parts);
    // All of it in blocks of 8 bytes, with 4 of padding at least.
    const padding = 8 + 3 - (message.length % 8);
    const length = wireUint32(message.length + padding + 1);
    this.#send(Buffer.concat([length, byte(padding), message, randomBytes(padding)]));
  }
}

/** A message's type, or the length of its padding. */
const byte = (value: number) => Buffer.from([value]);
