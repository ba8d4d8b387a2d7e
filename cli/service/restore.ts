import { resolve } from 'node:path';
import { createLog } from '../../shared/process/log.ts';
import { exitWith } from '../../shared/service/lifecycle.ts';
import { type Config, readConfig } from '../../shared/settings/config.ts';
import { openObjectStore } from '../../shared/storage/open.ts';
import { explainBackupError } from '../backup/explain-backup-error.ts';
import { restoreBackup } from '../backup/restore-backup.ts';
import { makeDataDir } from '../data-dir/find-data-dir.ts';
import { startPostgres } from '../embedded-postgres/postgres.ts';
import { prepareRoles } from '../embedded-postgres/roles.ts';
import { countOf } from '../output/count-of.ts';
import { printNotice } from '../output/print-notice.ts';
import { printRecord } from '../output/print-records.ts';
import { ProgressLine } from '../output/progress.ts';
import { storeOf } from './backup.ts';
import type { CommandContext } from './command-context.ts';

/** `windlass restore FOLDER`: into an empty database and the store of this installation, whose service does not run. */
export async function restore(
  { environment, life }: CommandContext,
  folder: string,
  { json }: { json?: boolean },
): Promise<void> {
  const config = readConfig(environment);
  const line = new ProgressLine();
  try {
    const { manifest, ended, others, isOlder } = await withNewDatabase(
      config,
      life.stopping,
      async url =>
        restoreBackup({
          url,
          folder: resolve(folder),
          signal: life.stopping,
          objects: await openObjectStore(storeOf(config, makeDataDir)),
          onProgress: text => line.showText(text),
        }),
    );
    line.end();
    const jobs =
      ended === 1 ? '1 job that was open then has' : `${ended} jobs that were open then have`;
    const { objects, taken } = manifest;
    const tables = manifest.tables.length;
    const sentence =
      `Restored ${tables} tables and ${countOf(objects, 'object')}, as they were at ${taken}.\n` +
      `${jobs} ended as outcome_unknown, and remote sessions are closed. Start with the keys of that service.${
        isOlder && config.DATABASE_URL
          ? '\nThe tables are those of an older release: run `windlass migrate` first.'
          : ''
      }`;
    if (others > 0)
      printNotice(
        `The store holds ${countOf(others, 'object')} that the backup lacks, which the service removes within hours. If another service uses this store, start none on it: restore into a store of its own.`,
      );
    await printRecord({ tables, objects, taken, ended, others }, { sentence, json });
  } catch (error) {
    line.end();
    if (life.stopping.aborted) exitWith('Nothing was restored: it was stopped. Restore again.');
    throw explainBackupError(error, 'Nothing was restored');
  } finally {
    line.end();
  }
}

/** The database at DATABASE_URL, or the embedded one of DATA_DIR, which is made where there is none. */
async function withNewDatabase<T>(
  config: Config,
  signal: AbortSignal,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const given = config.DATABASE_DIRECT_URL ?? config.DATABASE_URL;
  if (given) return work(given);
  const log = createLog({ level: config.LOG_LEVEL, name: 'windlass', secrets: [] });
  const postgres = await startPostgres({ dataDir: makeDataDir(config), log, signal });
  try {
    return await work((await prepareRoles(postgres.url)).owner);
  } finally {
    await postgres.stop();
  }
}
