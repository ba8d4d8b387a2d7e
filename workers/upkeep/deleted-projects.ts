import type { WorkerContext } from '../context.ts';

/** Removes what deleted projects hold, in batches. */
export async function purgeDeletedProjects(_context: WorkerContext): Promise<void> {}
