import { createHash } from 'node:crypto';
import type { JobRow } from '../../shared/database/schema.ts';

/** Attempts whose temporary files may have stayed behind. */
const MAX_EPOCHS = 20;
/** Names of one attempt. A rename over a lost connection does not come later than two further tries. */
const NAMES = 3;

interface Naming extends Pick<JobRow, 'id' | 'epoch'> {
  /** Random, and known to no host: the key of the job's object. */
  object: string;
}

/**
 * The end of the name of a try's temporary file, and those that earlier tries may have left. Two tries in a row have different
 * names: a rename over a lost connection may come late, and would publish what the next try has written so far. No name reveals
 * another: otherwise whoever may write to the folder could put a file or link of their own there.
 */
export function nameTemporaries(
  { id, epoch, object }: Naming,
  tries: number,
): { temporary: string; stale: string[] } {
  const name = (ofEpoch: number, ofTry: number) => {
    const hash = createHash('sha256').update([object, ofEpoch, ofTry].join('\n')).digest('hex');
    return `${id}-${ofEpoch}-${hash.slice(0, 20)}`;
  };
  const stale: string[] = [];
  for (let n = 0; n < Math.min(tries, NAMES); n++) stale.push(name(epoch, n));
  for (let back = 1; back <= Math.min(MAX_EPOCHS, epoch - 1); back++) {
    for (let n = 0; n < NAMES; n++) stale.push(name(epoch - back, n));
    // The name that a worker of the previous release gives.
    stale.push(`${id}-${epoch - back}`);
  }
  return { temporary: name(epoch, tries % NAMES), stale };
}
