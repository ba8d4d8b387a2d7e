import type { JobEvent } from '../../clients/typescript/src/follow.ts';
import type { Chunk, Line } from '../../clients/typescript/src/lines.ts';
import { printNotice } from '../output/print-notice.ts';
import { write } from '../output/write.ts';

/** What a job prints, and why it waits: once until it prints again, for a host may come and go. */
export async function printEvents(events: AsyncIterable<JobEvent>): Promise<void> {
  let printed: string | undefined;
  for await (const event of events) {
    if (event.event === 'output') {
      printed = undefined;
      await write(process[event.stream], event.bytes);
    } else if (event.event === 'state' && event.message && event.message !== printed) {
      printed = event.message;
      printNotice(printed);
    }
  }
}

/** Writes each stream to that of this process, no faster than it is read there. */
export async function printChunks(chunks: AsyncIterable<Chunk>): Promise<void> {
  for await (const { stream, bytes } of chunks) await write(process[stream], bytes);
}

/** One line of JSON for each line, on standard output. */
export async function printLines(lines: AsyncIterable<Line>): Promise<void> {
  for await (const line of lines) await write(process.stdout, `${JSON.stringify(line)}\n`);
}
