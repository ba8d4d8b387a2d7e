import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SkipReason } from '../skip.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** Inside the checkout: its programs find the packages of the checkout in a folder above them. */
const CACHE = join(ROOT, '.cache', 'previous-release');

/** The commit of the release that this one must run beside; CONTRIBUTING.md says when it changes. */
export const PREVIOUS_RELEASE: string = JSON.parse(
  readFileSync(join(ROOT, 'test', 'previous-release.json'), 'utf8'),
).commit;

/** Whether git knows a commit by this name. */
export const hasCommit = (name: string) =>
  spawnSync('git', ['cat-file', '-e', `${name}^{commit}`], { cwd: ROOT }).status === 0;

/** Whether the programs of one commit include the changes of another. */
export const isAncestor = (older: string, newer: string) =>
  spawnSync('git', ['merge-base', '--is-ancestor', older, newer], { cwd: ROOT }).status === 0;

export function missingPreviousRelease(): SkipReason | undefined {
  if (hasCommit(PREVIOUS_RELEASE)) return undefined;
  const reason = `needs the commit ${PREVIOUS_RELEASE.slice(0, 7)} of the previous release, which this clone lacks (git fetch --unshallow)`;
  return { reason, obtainable: false };
}

/** The folder with the compiled programs of the previous release, which are built once. */
export function buildPreviousRelease(): string {
  const folder = join(CACHE, PREVIOUS_RELEASE);
  if (existsSync(folder)) return folder;
  mkdirSync(CACHE, { recursive: true });
  const made = mkdtempSync(join(CACHE, '.new-'));
  try {
    const archive = execFileSync('git', ['archive', PREVIOUS_RELEASE], {
      cwd: ROOT,
      maxBuffer: 1 << 30,
    });
    execFileSync('tar', ['-x', '-C', made], { input: archive });
    if (!hasPackagesOf(made))
      run('npm', ['ci', '--omit=dev', '--no-audit', '--no-fund'], { cwd: made });
    buildPrograms(made);
    if (!existsSync(folder)) renameSync(made, folder);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
  return folder;
}

/** Whether this checkout has every package, in its version, that the programs in the folder need to run. */
function hasPackagesOf(folder: string): boolean {
  const read = (path: string): Record<string, { version?: string; dev?: true; optional?: true }> =>
    JSON.parse(readFileSync(path, 'utf8')).packages;
  const present = read(join(ROOT, 'node_modules', '.package-lock.json'));
  return Object.entries(read(join(folder, 'package-lock.json'))).every(([path, wanted]) => {
    if (path === '' || wanted.dev) return true;
    const found = present[path];
    return found ? found.version === wanted.version : wanted.optional === true;
  });
}

function buildPrograms(folder: string): void {
  const bundler = join(folder, 'scripts', 'bundle-programs.mjs');
  if (existsSync(bundler)) {
    run(process.execPath, [bundler], { cwd: folder });
    return;
  }
  // As commits before decision 61 are built.
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  run(process.execPath, [compiler, '-p', 'tsconfig.build.json', '--noCheck'], { cwd: folder });
  for (const part of ['api', 'workers', 'shared', 'cli']) {
    for (const name of readdirSync(join(folder, part), { recursive: true, encoding: 'utf8' })) {
      if (!/\.(sh|html|css)$/.test(name)) continue;
      cpSync(join(folder, part, name), join(folder, 'dist', part, name));
    }
  }
}

function run(program: string, args: string[], { cwd }: { cwd: string }): void {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed:\n${stdout}${stderr}`);
}
