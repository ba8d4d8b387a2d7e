import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { isOutputLost, loseOutput } from './lost-output.ts';

/** Where the stream takes no more, this writes nothing: lost-output.ts decides. */
export async function write(target: NodeJS.WriteStream, bytes: Uint8Array | string): Promise<void> {
  if (isOutputLost()) return;
  if (!(target instanceof Socket)) return writeWhole(target, bytes);
  if (!target.write(bytes)) await drained(target);
}

/** Node's stream for files ignores that a full disk took only the beginning. */
function writeWhole(target: { fd: number }, given: Uint8Array | string): void {
  const bytes = typeof given === 'string' ? Buffer.from(given) : given;
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(target.fd, bytes, at);
  } catch (error) {
    loseOutput(error as Error);
  }
}

async function drained(target: NodeJS.WriteStream): Promise<void> {
  const over = new AbortController();
  const { signal } = over;
  // An error is told to the listener for all of them.
  await Promise.race([once(target, 'drain', { signal }), once(target, 'close', { signal })]).catch(
    () => {},
  );
  over.abort();
}
