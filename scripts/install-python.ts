import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findProgram } from './programs.ts';

/** True where Python packages can be installed, with the network; needs no root. */
export function canInstallPython(): boolean {
  const python = findProgram('python3');
  // Debian keeps the second half of venv in a package of its own.
  return python !== undefined && run(python, ['-c', 'import venv, ensurepip']);
}

/**
 * Installs pinned packages into an environment of its own, visible only when it is whole. `python` is the interpreter,
 * by default the machine's.
 */
export function installPython(folder: string, list: string, python = findProgram('python3')): void {
  mkdirSync(dirname(folder), { recursive: true });
  const made = mkdtempSync(join(dirname(folder), '.new-'));
  try {
    if (python === undefined) return;
    if (!run(python, ['-m', 'venv', made])) return;
    const pip = ['-m', 'pip', '--disable-pip-version-check', 'install', '--quiet', '-r', list];
    // What runs in it is called by `python -m`: that does not mind that the folder is renamed.
    if (!run(join(made, 'bin', 'python'), pip)) return;
    if (!existsSync(folder)) renameSync(made, folder);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

function run(program: string, args: string[]): boolean {
  return spawnSync(program, args, { stdio: ['ignore', 2, 2] }).status === 0;
}
