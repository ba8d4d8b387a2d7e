import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import { ByteReader } from '../remote-files/byte-reader.ts';
import { encodePath, quotePath } from './frame-path.ts';
import { STREAM_MAGIC } from './frame-stream.ts';
import type { Frame } from './frame-validator.ts';
import { PROBLEMS } from './read-frames.ts';

/** Files that one `head` reads: forks are what takes the time. */
const BATCH = 100;
const CODES: Record<string, string> = {
  m: 'missing',
  d: 'directory',
  s: 'special',
  u: 'unreadable',
};

export type Head = { bytes: Buffer; isCut: boolean } | { problem: string };

/**
 * A script for /bin/sh that writes these files' first bytes for readHeads(), with two forks per hundred. `head` names
 * each file and `stat` tells its length, so that any content is told from the lines between.
 */
export function frameHeadsScript(frames: readonly Frame[], headBytes: number): string {
  const mark = randomBytes(16).toString('hex');
  const batches = inBatches(frames).map(batch =>
    ['b', ...batch.map(({ path }) => quotePath(path))].join(' '),
  );
  return `LC_ALL=C; export LC_ALL
m=${mark}
b() {
  c=''
  for p; do
    shift
    if [ -f "$p" ]; then
      if [ -r "$p" ]; then c="\${c}f"; set -- "$@" "$p"; else c="\${c}u"; fi
    elif [ -d "$p" ]; then c="\${c}d"
    elif [ -e "$p" ]; then c="\${c}s"
    else c="\${c}m"
    fi
  done
  echo "$m $c" || exit 1
  [ "$#" -eq 0 ] || { stat -L -c %s "$@" && head -c ${headBytes} "$@" /dev/null; } 2>/dev/null || exit 1
}
printf '\\n%s\\n' "${STREAM_MAGIC} $m"
${batches.join('\n')}
`;
}

interface ReadHeadsOptions<T> {
  headBytes: number;
  /** What is kept of a head, called as each one comes. */
  parse(head: Head): T;
  signal?: AbortSignal;
}

/**
 * Reads the output of frameHeadsScript(). Undefined if that is unexpected: a file changed, the host's tools differ, or
 * the connection was lost.
 */
export async function readHeads<T>(
  stdout: Readable,
  frames: readonly Frame[],
  { headBytes, parse, signal }: ReadHeadsOptions<T>,
): Promise<T[] | undefined> {
  const reader = new ByteReader(stdout, signal);
  const kept: T[] = [];
  try {
    await reader.readUntil(Buffer.from(`\n${STREAM_MAGIC} `), 2 ** 20);
    const mark = await readLine(reader);
    for (const batch of inBatches(frames)) {
      const [found, codes = ''] = (await readLine(reader)).split(' ');
      if (found !== mark || codes.length !== batch.length) return undefined;
      const files = batch.filter((_, i) => codes[i] === 'f');
      const read = await readBatch(reader, files, { headBytes, parse });
      for (const code of codes) {
        const head =
          code === 'f' ? read?.shift() : parse({ problem: PROBLEMS[CODES[code] ?? ''] ?? '' });
        if (!head) return undefined;
        kept.push(head);
      }
    }
    return kept;
  } catch {
    signal?.throwIfAborted();
    return undefined;
  } finally {
    reader.close();
  }
}

async function readBatch<T>(
  reader: ByteReader,
  files: readonly Frame[],
  { headBytes, parse }: Pick<ReadHeadsOptions<T>, 'headBytes' | 'parse'>,
): Promise<T[] | undefined> {
  if (files.length === 0) return [];
  const sizes: number[] = [];
  for (const _ of files) sizes.push(Number(await readLine(reader)));
  const kept: T[] = [];
  for (const [i, { path }] of files.entries()) {
    const size = sizes[i] ?? Number.NaN;
    if (!Number.isSafeInteger(size) || !(await hasName(reader, encodePath(path), i === 0)))
      return undefined;
    const bytes = await reader.readExactly(Math.min(size, headBytes));
    kept.push(parse({ bytes, isCut: size > headBytes }));
  }
  return (await hasName(reader, Buffer.from('/dev/null'), false)) ? kept : undefined;
}

/** Whether the line that `head` writes before a file is next. */
async function hasName(reader: ByteReader, path: Buffer, isFirst: boolean): Promise<boolean> {
  const line = Buffer.concat([
    Buffer.from(isFirst ? '==> ' : '\n==> '),
    path,
    Buffer.from(' <==\n'),
  ]);
  return (await reader.readExactly(line.length)).equals(line);
}

async function readLine(reader: ByteReader): Promise<string> {
  return (await reader.readUntil(Buffer.from('\n'), 4096)).bytes.toString('latin1');
}

function inBatches(frames: readonly Frame[]): Frame[][] {
  const count = Math.ceil(frames.length / BATCH);
  return Array.from({ length: count }, (_, i) => frames.slice(i * BATCH, (i + 1) * BATCH));
}
