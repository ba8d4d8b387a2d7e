import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../shared/package-root.ts';
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
  if (findTypeScriptGenerators() === undefined) installPackages(folderFor('package-lock.json'));
  if (findPythonGenerator() === undefined && canInstallPython())
    installPython(folderFor('python.txt'), PYTHON_LIST);
}

/** No package of theirs has an install script. */
function installPackages(folder: string): void {
  mkdirSync(dirname(folder), { recursive: true });
  const made = mkdtempSync(join(dirname(folder), '.new-'));
  try {
    cpSync(PACKAGES, made, { recursive: true });
    const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier'];
    const { status } = spawnSync('npm', args, { cwd: made, stdio: ['ignore', 2, 2] });
    if (status === 0 && !existsSync(folder)) renameSync(made, folder);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}
