import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../shared/process/package-root.ts';
import type { Config } from '../../shared/settings/config.ts';
import { CommandError } from '../command-error.ts';
import { chooseDataDir, hasDataDir } from './choose-data-dir.ts';

const optionsOf = (config: Config) => ({
  given: config.DATA_DIR,
  checkout: fileURLToPath(packageRoot),
});

/** The data directory of the service. Throws CommandError where there is none: a mistyped name must not make one. */
export function findDataDir(config: Config, hint = adviseOn(config)): string {
  if (hasDataDir(optionsOf(config))) return chooseDataDir(optionsOf(config)).dataDir;
  throw new CommandError(`There is no data directory ${config.DATA_DIR ?? 'of this checkout'}.`, {
    hint,
  });
}

const adviseOn = ({ DATABASE_URL }: Config) =>
  `Set DATA_DIR or ${DATABASE_URL ? 'S3_ENDPOINT' : 'DATABASE_URL'} to that of the service.`;

/** The data directory of the service, made where there is none. */
export const makeDataDir = (config: Config): string => chooseDataDir(optionsOf(config)).dataDir;

/**
 * The data directory of a service that starts, made where there is none. `print` gets a line where it is not the expected one.
 */
export function openDataDir(config: Config, print: (line: string) => void): string {
  const { dataDir, notice } = chooseDataDir({ ...optionsOf(config), isStart: true });
  if (notice) print(notice);
  return dataDir;
}
