import type { WorkerContext } from '../context.ts';

/** Removes logins and tokens that have ended. */
export async function removeOldLogins(_context: WorkerContext): Promise<void> {}
