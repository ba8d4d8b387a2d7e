import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type Config, readConfig } from '../../shared/config.ts';
import { WindlassError } from '../../shared/errors.ts';
import { openObjectStore } from '../../shared/storage/open.ts';
import { writeBackup } from '../backup/write-backup.ts';
import { ProgressLine } from '../client/progress.ts';
import { CommandError, ifMissing } from '../command-error.ts';
import { findDataDir, withDatabase } from '../find-database.ts';
import type { CommandContext } from './command-context.ts';

/** `windlass backup FOLDER`: the folder is there whole, or not at all. */
export async function backUp({ environment, life }: CommandContext, given: string): Promise<void> {
  const config = readConfig(environment);
  const folder = resolve(given);
  const present = await readdir(folder).catch(ifMissing<string[]>([]));
  if (present.length > 0)
    throw new CommandError(`${folder} is not empty.`, { hint: 'Give a new folder.' });
  const line = new ProgressLine();
  const partial = await mkdtemp(`${folder}.partial-`).catch((cause: unknown) => {
    throw new CommandError(`${folder} cannot be made.`, {
      hint: 'Make the folder that it is in.',
      cause,
    });
  });
  try {
    const manifest = await withDatabase(config, life.stopping, async url =>
      writeBackup({
        ...{ url: config.DATABASE_DIRECT_URL ?? url, folder: partial, signal: life.stopping },
        objects: await openObjectStore(storeOf(config)),
        onProgress: text => line.showText(text),
      }),
    );
    await rename(partial, folder);
    line.end();
    const { tables, objects, taken } = manifest;
    process.stdout.write(
      `${folder}: ${tables.length} tables and ${objects} objects, as they were at ${taken}.\n` +
        'The keys are not in it: keep SECRET_KEY and SEAL_PRIVATE_KEYS, or secrets.json of DATA_DIR, apart from it.\n',
    );
  } catch (error) {
    throw explain(error, folder);
  } finally {
    line.end();
    await rm(partial, { recursive: true, force: true });
  }
}

function explain(error: unknown, folder: string): unknown {
  if (error instanceof WindlassError)
    return new CommandError(`The backup was not made. ${error.message}`, { cause: error });
  // Of a system call, such as one that finds the disk full.
  if (!(error instanceof Error && 'syscall' in error)) return error;
  return new CommandError(`${folder} cannot be written: ${error.message}.`, { cause: error });
}

/** The settings of the store, as the service has them. */
export const storeOf = (config: Config): Config =>
  config.S3_ENDPOINT ? config : { ...config, DATA_DIR: findDataDir(config) };
