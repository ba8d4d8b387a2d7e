import { once } from 'node:events';
import type { Chunk, Line } from '../../clients/typescript/src/lines.ts';

/** Writes each stream to that of this process, no faster than it is read there. */
export async function printChunks(chunks: AsyncIterable<Chunk>): Promise<void> {
  for await (const { stream, bytes } of chunks) await write(process[stream], bytes);
}

/** One line of JSON for each line, on standard output. */
export async function printLines(lines: AsyncIterable<Line>): Promise<void> {
  for await (const line of lines) await write(process.stdout, `${JSON.stringify(line)}\n`);
}

/** A reader that is gone is no error here: who cares listens to the stream's errors. */
export async function write(target: NodeJS.WriteStream, bytes: Uint8Array | string): Promise<void> {
  if (target.destroyed || target.writableEnded || target.errored) return;
  if (target.write(bytes)) return;
  await Promise.race([once(target, 'drain'), once(target, 'close')]).catch(() => {});
}
