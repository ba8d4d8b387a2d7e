import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { makeTempDir } from '../test/harness/files/temp-dir.ts';

const { PATH } = process.env;
const root = join(import.meta.dirname, '..');
const directory = makeTempDir('bundles');
afterAll(() => directory.remove());

/** The files that a program loads until it refuses its settings: V8 lists them for the coverage of tests. */
function listLoaded(name: string, args: string[]): string[] {
  const folder = join(directory.path, name);
  const { status, stderr } = spawnSync(process.execPath, args, {
    cwd: root,
    env: { PATH, NODE_V8_COVERAGE: folder, HOME: directory.path, PORT: 'none' },
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect([name, stderr]).toEqual([name, expect.not.stringMatching(/\n {4}at /)]);
  expect([name, status]).toEqual([name, name === 'help' ? 0 : 1]);
  const urls = readdirSync(folder).flatMap(file => {
    const { result } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    return result.map(({ url }: { url: string }) => url);
  });
  return [...new Set(urls)].filter(url => url.startsWith('file:')).map(url => fileURLToPath(url));
}

/** The modules that a bundle consists of, by their paths in the checkout. One that only names others has no source map. */
function listModules(bundle: string): string[] {
  if (!existsSync(`${bundle}.map`)) return [];
  const { sources } = JSON.parse(readFileSync(`${bundle}.map`, 'utf8'));
  return sources.map((path: string) => relative(root, resolve(dirname(bundle), path)));
}

// A thousand files each, before they were bundled: three quarters of the processor time of a start.
test.each([
  { name: 'API', args: ['dist/api/main.js'], most: 140 },
  { name: 'worker', args: ['dist/workers/main.js', 'remote'], most: 160 },
  { name: 'supervisor', args: ['dist/cli/main.js', 'up'], most: 120 },
  { name: 'command', args: ['dist/cli/main.js', 'jobs'], most: 40 },
])('the $name starts from at most $most files', ({ name, args, most }) => {
  expect(listLoaded(name, args).length).toBeLessThan(most);
});

test('the command loads no package that only the service needs', () => {
  const modules = listLoaded('help', ['dist/cli/main.js', '--help']).flatMap(listModules);
  const packages = modules.flatMap(path => /^node_modules\/([^/]+)/.exec(path)?.[1] ?? []);
  expect([...new Set(packages)].sort()).toEqual(['commander', 'dotenv', 'zod']);
});

test('every program that a file of the checkout names is built', () => {
  // Not those of earlier releases, of the client's package and of what a test builds.
  const others = [':!CHANGELOG.md', ':!clients', ':!*package-lock.json', ':!scripts/run.test.ts'];
  const args = ['grep', '-hoE', 'dist/[a-z][a-z0-9/-]*\\.js\\b', '--', '.', ...others];
  const found = execFileSync('git', args, { cwd: root, encoding: 'utf8' });
  const paths = new Set(found.trim().split('\n'));
  expect([...paths].filter(path => !existsSync(join(root, path)))).toEqual([]);
});

test('no module is in two bundles, so that each has one state', () => {
  const files = readdirSync(join(root, 'dist'), { recursive: true, encoding: 'utf8' });
  // Those in chunks/ may be of the build before.
  const entries = files.filter(path => !/^(console|chunks)\//.test(path));
  const chunks = readFileSync(join(root, 'dist/.chunks'), 'utf8').split('\n');
  const bundles = [...entries, ...chunks].filter(path => path.endsWith('.js'));
  const modules = bundles.flatMap(path => listModules(join(root, 'dist', path)));
  expect(modules.length).toBeGreaterThan(1_000);
  expect(modules.filter((module, n) => modules.indexOf(module) !== n)).toEqual([]);
});
