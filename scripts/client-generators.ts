import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../shared/process/package-root.ts';
import { installPinned } from './install-pinned.ts';
import { canInstallPython, installPython } from './install-python.ts';
import { CACHE } from './programs.ts';

/** What generates clients from the description; both lists pin all that comes with it. */
const PACKAGES = fileURLToPath(new URL('scripts/client-generators/', packageRoot));
const PYTHON_LIST = join(PACKAGES, 'python.txt');

/** A folder of its own for each list. */
const folderFor = (list: string) =>
  join(
    CACHE,
    'client-generators',
    createHash('sha256')
      .update(readFileSync(join(PACKAGES, list)))
      .digest('hex')
      .slice(0, 16),
  );

/** The folder with openapi-typescript and @hey-api/openapi-ts in its node_modules. */
export function findTypeScriptGenerators(): string | undefined {
  const folder = folderFor('package-lock.json');
  return existsSync(folder) ? folder : undefined;
}

/** The Python that has openapi-python-client and mypy: to be called with `-m`. */
export function findPythonGenerator(): string | undefined {
  const python = join(folderFor('python.txt'), 'bin', 'python');
  return existsSync(python) ? python : undefined;
}

/** Installs what is missing of them into the cache folder; needs the network. */
export function installClientGenerators(): void {
  if (findTypeScriptGenerators() === undefined)
    installPinned(PACKAGES, folderFor('package-lock.json'));
  if (findPythonGenerator() === undefined && canInstallPython())
    installPython(folderFor('python.txt'), PYTHON_LIST);
}
