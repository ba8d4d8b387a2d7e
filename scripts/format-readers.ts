import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../shared/process/package-root.ts';
import { installPython } from './install-python.ts';
import { CACHE } from './programs.ts';

/** Python's own readers of the formats of uploads, whose values the tests compare with. */
export const FORMAT_READERS = 'scripts/format-readers.txt';
const LIST = fileURLToPath(new URL(FORMAT_READERS, packageRoot));

const folder = () =>
  join(
    CACHE,
    'format-readers',
    createHash('sha256').update(readFileSync(LIST)).digest('hex').slice(0, 16),
  );

/** The Python that has them. */
export function findFormatReaders(): string | undefined {
  const python = join(folder(), 'bin', 'python');
  return existsSync(python) ? python : undefined;
}

/** Installs them into the cache folder; needs the network. */
export const installFormatReaders = (): void => installPython(folder(), LIST);
