import type { WorkerContext } from '../context.ts';

/** Ends uploads that nothing was sent to for long, and lets go of the parts of those that have ended. */
export async function endIdleUploads(_context: WorkerContext): Promise<void> {}
