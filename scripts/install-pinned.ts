import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * Installs the npm packages that the lockfile in `list` pins, without their scripts. `folder` appears only when it is
 * whole and contains the path `requires`. Needs the network; npm's errors go to standard error.
 */
export function installPinned(list: string, folder: string, requires = 'node_modules'): void {
  mkdirSync(dirname(folder), { recursive: true });
  const made = mkdtempSync(join(dirname(folder), '.new-'));
  try {
    cpSync(list, made, { recursive: true });
    const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier'];
    const { status } = spawnSync('npm', args, { cwd: made, stdio: ['ignore', 2, 2] });
    const isWhole = status === 0 && existsSync(join(made, requires));
    if (isWhole && !existsSync(folder)) renameSync(made, folder);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}
