import type { WorkerContext } from '../context.ts';

/** A shortage that lasts is told again after so long. */
const REPEAT_MS = 3_600_000;

/** Warns when the store's disk has less than twice LIMIT_FREE_BYTES left, and reports when it has more again. */
export function warnOfFullDisk({
  freeSpace,
  log,
}: Pick<WorkerContext, 'freeSpace' | 'log'>): () => Promise<void> {
  let warnedAt: number | undefined;
  return async () => {
    const shortage = await freeSpace.describeShortage();
    if (!shortage) {
      if (warnedAt !== undefined) log.info('the disk of the object store has space again');
      warnedAt = undefined;
    } else if (warnedAt === undefined || performance.now() - warnedAt > REPEAT_MS) {
      warnedAt = performance.now();
      log.warn(shortage);
    }
  };
}
