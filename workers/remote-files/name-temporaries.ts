/** Attempts whose temporary files may have stayed behind, and tries of this one. */
const MOST_EPOCHS = 20;
const MOST_TRIES = 20;
/** Of an earlier attempt. One that meets a lost connection soon yields its slot, so that most have one or two. */
const TRIES_BEFORE = 3;

/**
 * The end of the name of a try's temporary file, and those of earlier tries, newest first. No two tries have the same:
 * a rename over a lost connection may come late, and would publish what the next try has written so far.
 */
export function nameTemporaries(
  { id, epoch }: { id: string; epoch: number },
  tries: number,
): { temporary: string; stale: string[] } {
  const name = (ofEpoch: number, ofTry: number) => `${id}-${ofEpoch}-${ofTry}`;
  const stale: string[] = [];
  for (let back = 1; back <= Math.min(MOST_TRIES, tries); back++)
    stale.push(name(epoch, tries - back));
  for (let back = 1; back <= Math.min(MOST_EPOCHS, epoch - 1); back++)
    for (let ofTry = TRIES_BEFORE - 1; ofTry >= 0; ofTry--) stale.push(name(epoch - back, ofTry));
  return { temporary: name(epoch, tries), stale };
}
