import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../database/connect.ts';
import type { Logger } from '../process/log.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import { findForeignStore } from './store-marker.ts';

const PAUSE_MS = 5_000;

/**
 * Waits while the object store is not that of the database, so that nothing is stored there. A store that cannot be
 * reached is not waited for: much works without it, and /readyz looks again.
 */
export async function waitForStore(
  { db }: Database,
  objects: ObjectStore,
  { log, signal }: { log: Logger; signal: AbortSignal },
): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const look = objects.check().then(() => findForeignStore(db, objects));
    const foreign = await look.catch((error: unknown) => {
      log.warn(
        { err: error },
        'it could not be read to which installation the object store belongs',
      );
      return undefined;
    });
    if (!foreign) return;
    log.error(foreign, 'waiting for the right object store');
    await delay(PAUSE_MS, undefined, { signal });
  }
}
