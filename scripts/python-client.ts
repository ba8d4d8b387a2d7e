import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../shared/process/package-root.ts';
import { installPython } from './install-python.ts';
import { CACHE, findProgram } from './programs.ts';

/** The client in Python. */
export const PYTHON_CLIENT = fileURLToPath(new URL('clients/python/', packageRoot));
const LISTS = join(PYTHON_CLIENT, 'tests/requirements');

/** `core` is what the client needs, and its tests; `full` has all that some of its methods and its checks need besides. */
type List = 'core' | 'full';

/** An interpreter, and the environment that its tests run in. */
export interface TestPython {
  /** The version of Python, such as 3.11. */
  version: string;
  program: string;
  list: List;
  /** To be called with `-m`. */
  python: string;
  installed: boolean;
}

/** The first version that the client supports, and the first for which the packages of `full` are pinned. */
const OLDEST = 9;
const FIRST_FULL = 11;

/**
 * The Pythons for the client's tests: all tests on the machine's own, or the newest one if that is too old; the core's
 * on the oldest and the newest, in the long form on every one.
 */
export function listTestPythons(): TestPython[] {
  const found = listPythons();
  const own = found[0];
  const sorted = [...found].sort((a, b) => a.minor - b.minor);
  const [oldest, newest] = [sorted[0], sorted.at(-1)];
  const full = own && own.minor >= FIRST_FULL ? own : newest;
  const isLong = process.env.FAULTS === 'full';
  const chosen = new Set(isLong ? [full, ...found] : [full, oldest, newest]);
  return [...chosen].flatMap(one => {
    if (one === undefined) return [];
    const list: List = one === full && one.minor >= FIRST_FULL ? 'full' : 'core';
    const python = join(folderFor(list, one.version), 'bin', 'python');
    const { version, program } = one;
    return [{ version, program, list, python, installed: existsSync(python) }];
  });
}

/** Installs what is missing of them into the cache folder; needs the network. */
export function installPythonClientTests(): void {
  for (const { list, version, program, installed } of listTestPythons())
    if (!installed) installPython(folderFor(list, version), join(LISTS, `${list}.txt`), program);
}

/** A folder of its own for each list and version. */
function folderFor(list: List, version: string): string {
  const hash = createHash('sha256');
  for (const name of ['core', 'full']) hash.update(readFileSync(join(LISTS, `${name}.txt`)));
  return join(CACHE, 'python-client', `${list}-${version}-${hash.digest('hex').slice(0, 16)}`);
}

/** The interpreters that can make environments, one of each version, the machine's own first. */
function listPythons(): { version: string; minor: number; program: string }[] {
  const names = Array.from({ length: 12 }, (_unused, n) => `python3.${OLDEST + n}`);
  const programs = ['python3', ...names]
    .map(findProgram)
    .filter(program => program !== undefined)
    // pyenv's own are slow to say that they are not in use; they are listed below.
    .filter(program => program.endsWith('/python3') || !program.includes('/shims/'));
  const pythons = new Map<number, { version: string; minor: number; program: string }>();
  for (const program of [...programs, ...listOfPyenv()]) {
    const minor = askMinor(program);
    if (minor !== undefined && minor >= OLDEST && !pythons.has(minor))
      pythons.set(minor, { version: `3.${minor}`, minor, program });
  }
  return [...pythons.values()];
}

/** pyenv keeps versions beside each other, of which PATH has one. */
function listOfPyenv(): string[] {
  const folder = join(process.env.PYENV_ROOT || join(homedir(), '.pyenv'), 'versions');
  if (!existsSync(folder)) return [];
  return readdirSync(folder).map(version => join(folder, version, 'bin', 'python3'));
}

/** Its version after `3.`; undefined where it does not run or makes no environments. */
function askMinor(program: string): number | undefined {
  const script = 'import sys, venv, ensurepip; print(*sys.version_info[:2])';
  const { status, stdout } = spawnSync(program, ['-c', script], { encoding: 'utf8' });
  const [major, minor] = (stdout ?? '').trim().split(' ').map(Number);
  return status === 0 && major === 3 ? minor : undefined;
}
