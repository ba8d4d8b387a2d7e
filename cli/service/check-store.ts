import { openDatabase } from '../../shared/database/connect.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { findForeignStore } from '../../shared/installation/store-marker.ts';
import type { Config } from '../../shared/settings/config.ts';
import { openObjectStore } from '../../shared/storage/open.ts';
import { CommandError } from '../command-error.ts';

/** Throws CommandError where the object store cannot be used, or is not that of this database, which is migrated. */
export async function requireOwnStore(url: string, config: Config): Promise<void> {
  // A store on a shared folder sets it.
  const umask = process.umask();
  const database = openDatabase(config.DATABASE_DIRECT_URL ?? url, { max: 1 });
  try {
    const objects = await openObjectStore(config);
    await objects.check();
    const foreign = await findForeignStore(database.db, objects);
    if (foreign) throw new CommandError(foreign.problem, foreign);
  } catch (error) {
    if (!(error instanceof WindlassError)) throw error;
    const hint = `See ${config.S3_ENDPOINT ? 'S3_ENDPOINT' : `${config.DATA_DIR}/objects`}.`;
    throw new CommandError(error.message, { hint, cause: error });
  } finally {
    process.umask(umask);
    await database.close();
  }
}
