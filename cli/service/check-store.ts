import { openDatabase } from '../../shared/database/connect.ts';
import type { Config } from '../../shared/settings/config.ts';
import { openObjectStore } from '../../shared/storage/open.ts';
import { findForeignStore } from '../../shared/storage/store-marker.ts';
import { CommandError } from '../command-error.ts';

/** Throws CommandError where the object store is not that of this database, which is migrated. */
export async function requireOwnStore(url: string, config: Config): Promise<void> {
  // A store on a shared folder sets it.
  const umask = process.umask();
  const database = openDatabase(config.DATABASE_DIRECT_URL ?? url, { max: 1 });
  try {
    const foreign = await findForeignStore(database.db, await openObjectStore(config));
    if (foreign) throw new CommandError(foreign.problem, foreign);
  } finally {
    process.umask(umask);
    await database.close();
  }
}
