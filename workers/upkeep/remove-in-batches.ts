import { sleep } from '../../shared/process/abort.ts';

/** After each batch the database is left to others for so many times as long as the batch took. */
export const REST = 3;

/** Removes batches of this size until one is not full, with pauses in between. */
export async function removeInBatches(
  stopping: AbortSignal,
  size: number,
  removeBatch: () => Promise<number>,
): Promise<void> {
  while (!stopping.aborted) {
    const began = performance.now();
    if ((await removeBatch()) < size) return;
    await sleep(stopping, REST * (performance.now() - began));
  }
}
