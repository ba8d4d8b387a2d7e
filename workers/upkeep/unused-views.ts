import type { WorkerContext } from '../context.ts';

/** Removes table views that nobody looked at for a day, or whose table is gone. */
export async function removeUnusedViews(_context: WorkerContext): Promise<void> {}
