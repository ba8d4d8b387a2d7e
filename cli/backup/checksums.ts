import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, type WriteStream } from 'node:fs';
import { link, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Readable, Transform } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import { CommandError, errnoOf } from '../command-error.ts';

const SUMS = 'SHA256SUMS';
/** The older file is missing, on another disk, of another user, or linked too often; or its file system has no links. */
const NO_LINK = ['ENOENT', 'EXDEV', 'EPERM', 'EACCES', 'EMLINK', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP'];

/** Writes files into a new folder, and the SHA-256 of each into its SHA256SUMS. All are on the disk after close(). */
export class SummedFolder {
  readonly #folder: string;
  readonly #signal: AbortSignal;
  readonly #sums: WriteStream;

  constructor(folder: string, signal: AbortSignal) {
    this.#folder = folder;
    this.#signal = signal;
    this.#sums = createWriteStream(join(folder, SUMS), { flags: 'wx', mode: 0o600, flush: true });
    // write() and close() throw it.
    this.#sums.on('error', () => {});
  }

  /** Writes `source` through these streams into the file `name` of the folder. Returns the number of bytes. */
  async write(name: string, source: Readable, ...through: Transform[]): Promise<number> {
    const path = join(this.#folder, name);
    // A stream that fails before the pipeline has it must fail in it: a COPY emits its error once, and the pipeline
    // would not end.
    source.on('error', error => source.destroy(error));
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const hash = createHash('sha256');
    let size = 0;
    const meter = new Transform({
      transform(bytes: Buffer, _encoding, done) {
        hash.update(bytes);
        size += bytes.length;
        done(null, bytes);
      },
    });
    const file = createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true });
    await pipeline([source, ...through, meter, file], { signal: this.#signal });
    if (this.#sums.errored) throw this.#sums.errored;
    this.#sums.write(`${hash.digest('hex')}  ${name}\n`);
    return size;
  }

  /** Takes the file `name` of an older folder, which has this sum, without a copy. False where that cannot be. */
  async link(name: string, older: string, digest: string): Promise<boolean> {
    const path = join(this.#folder, name);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    try {
      await link(join(older, name), path);
    } catch (error) {
      if (NO_LINK.includes(errnoOf(error) ?? '')) return false;
      throw error;
    }
    if (this.#sums.errored) throw this.#sums.errored;
    this.#sums.write(`${digest}  ${name}\n`);
    return true;
  }

  async close(): Promise<void> {
    this.#sums.end();
    await finished(this.#sums);
  }
}

/** The sums of the files of a folder whose names begin so. */
export async function readSumsOf(folder: string, prefix: string): Promise<Map<string, string>> {
  const sums = new Map<string, string>();
  for await (const { name, digest } of readSums(folder))
    if (name.startsWith(prefix)) sums.set(name, digest);
  return sums;
}

/** The names of the files of a folder's SHA256SUMS. */
export async function* listSummed(folder: string): AsyncGenerator<string> {
  for await (const { name } of readSums(folder)) yield name;
}

/** Reads every file of SHA256SUMS, and tells its name. Throws CommandError at the first that is missing or has other bytes. */
export async function* verifySums(folder: string, signal: AbortSignal): AsyncGenerator<string> {
  for await (const { digest, name } of readSums(folder)) {
    const hash = createHash('sha256');
    try {
      await pipeline(createReadStream(join(folder, name)), hash, { signal });
    } catch (cause) {
      signal.throwIfAborted();
      const what = errnoOf(cause) === 'ENOENT' ? 'is missing' : 'cannot be read';
      throw notWhole(`${name} ${what}`, cause);
    }
    if (hash.digest('hex') !== digest) throw notWhole(`${name} was changed`);
    yield name;
  }
}

export const notWhole = (what: string, cause?: unknown) =>
  new CommandError(`The backup is not whole: ${what}.`, {
    hint: 'Use another copy of it.',
    cause,
  });

async function* readSums(folder: string): AsyncGenerator<{ digest: string; name: string }> {
  const input = createReadStream(join(folder, SUMS));
  try {
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      const [, digest, name] =
        /^([0-9a-f]{64}) {2}((?:tables|objects)\/[\w./-]+)$/.exec(line) ?? [];
      if (!digest || !name || name.split('/').includes('..')) throw notWhole(`${SUMS} is damaged`);
      yield { digest, name };
    }
  } catch (error) {
    throw error instanceof CommandError ? error : notWhole(`${SUMS} cannot be read`, error);
  }
}
