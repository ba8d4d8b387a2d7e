import { lstat, mkdtemp, rename, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { exitWith } from '../../shared/service/lifecycle.ts';
import { type Config, readConfig } from '../../shared/settings/config.ts';
import { openObjectStore } from '../../shared/storage/open.ts';
import { explainBackupError } from '../backup/explain-backup-error.ts';
import { MANIFEST } from '../backup/manifest.ts';
import { writeBackup } from '../backup/write-backup.ts';
import { CommandError, ifMissing } from '../command-error.ts';
import { findDataDir } from '../data-dir/find-data-dir.ts';
import { WITHOUT_ALL } from '../exit-status.ts';
import { withDirectDatabase } from '../find-database.ts';
import { countOf } from '../output/count-of.ts';
import { printRecord } from '../output/print-records.ts';
import { ProgressLine } from '../output/progress.ts';
import type { CommandContext } from './command-context.ts';

interface BackupArguments {
  /** An older backup. */
  since?: string;
  withoutMissing?: boolean;
  json?: boolean;
}

/** `windlass backup FOLDER`: the folder is there whole, or not at all. */
export async function backUp(
  context: CommandContext,
  folder: string,
  options: BackupArguments,
): Promise<void> {
  try {
    await makeFolder(context, resolve(folder), options);
  } catch (error) {
    if (context.life.stopping.aborted) exitWith('The backup was not made: it was stopped.');
    throw explainBackupError(error, 'The backup was not made');
  }
}

async function makeFolder(
  { environment, life }: CommandContext,
  folder: string,
  { since, withoutMissing, json }: BackupArguments,
): Promise<void> {
  const config = readConfig(environment);
  // A mount, or a link, could not get the folder's place.
  if (await lstat(folder).catch(ifMissing(undefined)))
    throw new CommandError(`${folder} is there already.`, {
      hint: 'Give a folder that is not, such as one in it.',
    });
  const line = new ProgressLine();
  const partial = await mkdtemp(`${folder}.partial-`);
  try {
    const { manifest, linked } = await withDirectDatabase(config, life.stopping, async url =>
      writeBackup({
        url,
        folder: partial,
        destination: folder,
        signal: life.stopping,
        ...(since !== undefined && { since: resolve(since) }),
        ...(withoutMissing && { withoutMissing }),
        objects: await openObjectStore(storeOf(config)),
        onProgress: text => line.showText(text),
      }),
    );
    await rename(partial, folder);
    line.end();
    const { tables, objects, missing, taken } = manifest;
    const sentence =
      `${folder}: ${tables.length} tables and ${countOf(objects, 'object')}, as they were at ${taken}.\n` +
      (missing.length === 0
        ? ''
        : `The store lacks ${countOf(missing.length, 'more object')}: see "missing" of ${MANIFEST}.\n`) +
      (since === undefined ? '' : `${linked} of the objects are files of ${since}, too.\n`) +
      'The keys are not in it: keep SECRET_KEY and SEAL_PRIVATE_KEYS, or secrets.json of DATA_DIR, apart from it.';
    const counts = { tables: tables.length, objects, linked, missing: missing.length };
    await printRecord({ folder, ...counts, taken }, { sentence, json });
    if (missing.length > 0) process.exitCode = WITHOUT_ALL;
  } finally {
    line.end();
    await rm(partial, { recursive: true, force: true });
  }
}

/** The settings of the store, as the service has them. */
export const storeOf = (config: Config, dataDirOf = findDataDir): Config =>
  config.S3_ENDPOINT ? config : { ...config, DATA_DIR: dataDirOf(config) };
