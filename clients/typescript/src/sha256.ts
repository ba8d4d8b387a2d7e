/** SHA-256 of bytes that come one after the other. */
export interface Sha256 {
  update(bytes: Uint8Array): void;
  digest(): Uint8Array;
}

interface NodeProcess {
  getBuiltinModule?(name: 'node:crypto'): { createHash(name: 'sha256'): Sha256 } | undefined;
}

/** Node's own where there is one. Browsers hash only complete bytes, and only on pages that were loaded by https. */
export function createSha256(): Sha256 {
  const { process } = globalThis as { process?: NodeProcess };
  return process?.getBuiltinModule?.('node:crypto')?.createHash('sha256') ?? new OwnSha256();
}

export const toHex = (bytes: Uint8Array): string =>
  [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('');

const BLOCK = 64;
const PRIMES = firstPrimes(64);
/** The first 32 bits of the fractional part. */
const fractionOf = (root: number): number => ((root - Math.floor(root)) * 2 ** 32) | 0;
const K = Int32Array.from(PRIMES, prime => fractionOf(Math.cbrt(prime)));

/** FIPS 180-4. */
export class OwnSha256 implements Sha256 {
  readonly #state = Int32Array.from(PRIMES.slice(0, 8), prime => fractionOf(Math.sqrt(prime)));
  readonly #block = new Uint8Array(BLOCK);
  readonly #words = new Int32Array(BLOCK);
  #length = 0;

  update(bytes: Uint8Array): void {
    let filled = this.#length % BLOCK;
    this.#length += bytes.length;
    for (let at = 0; at < bytes.length; ) {
      const piece = bytes.subarray(at, at + BLOCK - filled);
      this.#block.set(piece, filled);
      filled += piece.length;
      at += piece.length;
      if (filled < BLOCK) return;
      this.#compress();
      filled = 0;
    }
  }

  digest(): Uint8Array {
    const bits = this.#length * 8;
    const zeros = (2 * BLOCK - 9 - (this.#length % BLOCK)) % BLOCK;
    const end = new DataView(new ArrayBuffer(1 + zeros + 8));
    end.setUint8(0, 0x80);
    end.setUint32(1 + zeros, Math.floor(bits / 2 ** 32));
    end.setUint32(5 + zeros, bits % 2 ** 32);
    this.update(new Uint8Array(end.buffer));
    const digest = new DataView(new ArrayBuffer(32));
    for (const [n, word] of this.#state.entries()) digest.setInt32(4 * n, word);
    return new Uint8Array(digest.buffer);
  }

  #compress(): void {
    const w = this.#words;
    const block = new DataView(this.#block.buffer);
    for (let t = 0; t < 16; t++) w[t] = block.getInt32(4 * t);
    for (let t = 16; t < 64; t++) {
      const [w15, w2] = [at(w, t - 15), at(w, t - 2)];
      const s0 = turn(w15, 7) ^ turn(w15, 18) ^ (w15 >>> 3);
      const s1 = turn(w2, 17) ^ turn(w2, 19) ^ (w2 >>> 10);
      w[t] = at(w, t - 16) + s0 + at(w, t - 7) + s1;
    }
    const state = this.#state;
    let [a, b, c, d] = [at(state, 0), at(state, 1), at(state, 2), at(state, 3)];
    let [e, f, g, h] = [at(state, 4), at(state, 5), at(state, 6), at(state, 7)];
    for (let t = 0; t < 64; t++) {
      const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
      const first = (h + s1 + ((e & f) ^ (~e & g)) + at(K, t) + at(w, t)) | 0;
      const s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
      const second = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + first) | 0;
      d = c;
      c = b;
      b = a;
      a = (first + second) | 0;
    }
    for (const [n, word] of [a, b, c, d, e, f, g, h].entries()) state[n] = at(state, n) + word;
  }
}

const at = (words: Int32Array, n: number): number => words[n] as number;
const turn = (word: number, by: number): number => (word >>> by) | (word << (32 - by));

function firstPrimes(count: number): number[] {
  const primes: number[] = [];
  for (let n = 2; primes.length < count; n++)
    if (primes.every(prime => n % prime !== 0)) primes.push(n);
  return primes;
}
