import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeTempDir } from '../test/harness/files/temp-dir.ts';
import { missingRoot, skipTest } from '../test/harness/skip.ts';

const SCRIPTS = [
  'run',
  'prepare-checkout',
  'build',
  'bundle-programs',
  'program-sources',
  'build-console',
  'install-own-packages',
  'list-files',
  'stamp-files',
  'run-command',
  'process-lock',
];
const HELLO = `process.on('SIGTERM', () => process.exit(7));
console.log(JSON.stringify(process.argv.slice(2)));
if (process.argv[2] === 'stay') setInterval(() => {}, 1000);
`;

/** Loads a part of it when it is told to. */
const WAITS = `process.on('SIGUSR2', async () => {
  console.log((await import('./part/late.ts')).text);
  process.exit();
});
console.log('waits');
setInterval(() => {}, 1000);
`;

/** The checkout's own, from a package of their name. */
const BUNDLER = Object.fromEntries(
  ['index', 'experimental-index'].map(name => [
    `${name.replace('-index', '')}.mjs`,
    `export * from '${new URL(`../node_modules/rolldown/dist/${name}.mjs`, import.meta.url)}';`,
  ]),
);

/** Says how often it was run. */
const VITE = `const { appendFileSync, mkdirSync } = require('node:fs');
mkdirSync('dist/console', { recursive: true });
appendFileSync('dist/console/built', 'x');
`;

const directory = makeTempDir('run');
const root = join(directory.path, 'checkout');

function put(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

/** A package as npm takes it from a file, so that nothing is fetched. */
function pack(name: string, files: Record<string, string>, extra = {}): void {
  const manifest = { name, version: '1.0.0', ...extra };
  for (const [path, text] of Object.entries(files)) put(`packed/package/${path}`, text);
  put('packed/package/package.json', JSON.stringify(manifest));
  execFileSync('tar', ['-czf', join(root, `${name}.tgz`), '-C', join(root, 'packed'), 'package']);
  rmSync(join(root, 'packed'), { recursive: true });
}

interface Run {
  child: ChildProcess;
  ended: Promise<{ code: number | null; stdout: string; stderr: string }>;
}

function start(args: string[], options: { uid?: number } = {}): Run {
  const child = spawn(process.execPath, [join(root, 'scripts/run.mjs'), ...args], {
    ...options,
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', chunk => {
      texts[name] += chunk;
    });
  }
  const ended = new Promise<Awaited<Run['ended']>>(settle =>
    child.once('close', code => settle({ code, ...texts })),
  );
  return { child, ended };
}

const hello = (...args: string[]) => start(['dist/demo/hello.js', ...args]).ended;

describe('scripts/run.mjs', () => {
  beforeAll(() => {
    for (const name of SCRIPTS) {
      cpSync(new URL(`${name}.mjs`, import.meta.url), join(root, `scripts/${name}.mjs`));
    }
    pack('rolldown', BUNDLER, {
      exports: { '.': './index.mjs', './experimental': './experimental.mjs' },
    });
    pack('vite', { 'bin/vite.js': VITE });
    pack('tool', {}, { optionalDependencies: { 'tool-other-platform': 'file:absent.tgz' } });
    const dependencies = { tool: 'file:tool.tgz' };
    const devDependencies = { rolldown: 'file:rolldown.tgz', vite: 'file:vite.tgz' };
    const manifest = { name: 'x', version: '1.0.0', type: 'module', dependencies, devDependencies };
    put('package.json', JSON.stringify(manifest));
    const packages = {
      '': manifest,
      'node_modules/tool': {
        version: '1.0.0',
        resolved: 'file:tool.tgz',
        optionalDependencies: { 'tool-other-platform': 'file:absent.tgz' },
      },
      'node_modules/rolldown': { version: '1.0.0', resolved: 'file:rolldown.tgz', dev: true },
      'node_modules/vite': { version: '1.0.0', resolved: 'file:vite.tgz', dev: true },
    };
    put(
      'package-lock.json',
      JSON.stringify({ name: 'x', version: '1.0.0', lockfileVersion: 3, requires: true, packages }),
    );
    const settings = readFileSync(new URL('../tsconfig.json', import.meta.url), 'utf8');
    put('tsconfig.json', settings.replace('"types": ["node"]', '"types": []'));
    put('demo/hello.ts', HELLO);
    put('demo/hello.sh', 'echo hello\n');
    put('demo/hello.test.ts', 'is not compiled');
  });
  afterAll(() => directory.remove());

  test('installs once and builds once, however many start, and breaks a dead one’s lock', async () => {
    put('.cache/prepare.lock/4194305.1', '');
    const runs = await Promise.all(['a', 'b', 'c', 'd'].map(name => hello(name, '--flag')));
    expect(runs.map(run => run.stdout)).toEqual(
      ['a', 'b', 'c', 'd'].map(name => `["${name}","--flag"]\n`),
    );
    const said = runs.map(run => run.stderr).join('');
    expect(said.match(/Building/g)).toHaveLength(1);
    // The lockfile lacks another platform's package, so npm ci would refuse it.
    expect(said.match(/Installing packages \(npm install --no-save\)/g)).toHaveLength(1);
    expect(existsSync(join(root, 'dist/demo/hello.sh'))).toBe(true);
    expect(existsSync(join(root, 'dist/demo/hello.test.js'))).toBe(false);
    expect(await readdir(join(root, '.cache'))).toEqual([]);
  });

  test('prints nothing if nothing changed, and forwards exit codes and signals', async () => {
    const { child, ended } = start(['dist/demo/hello.js', 'stay']);
    child.stdout?.once('data', () => child.kill('SIGTERM'));
    expect(await ended).toEqual({ code: 7, stdout: '["stay"]\n', stderr: '' });
  });

  test('builds what was changed, added or deleted, whatever the times of the files', async () => {
    put('demo/hello.ts', `${HELLO}console.log('changed');\n`);
    utimesSync(join(root, 'demo/hello.ts'), 1, 1);
    put('demo/second.ts', '');
    expect((await hello('x')).stdout).toBe('["x"]\nchanged\n');
    expect(existsSync(join(root, 'dist/demo/second.js'))).toBe(true);
    rmSync(join(root, 'demo/second.ts'));
    expect((await hello('x')).stderr).toBe('Building …\n');
    expect(existsSync(join(root, 'dist/demo/second.js'))).toBe(false);
  });

  test('a program that runs loads later what it was built with, until the build after the next', async () => {
    const listChunks = () =>
      readdirSync(join(root, 'dist/chunks')).filter(name => /^late.*\.js$/.test(name));
    const save = async (text: string) => {
      put('demo/part/late.ts', `export const text = '${text}';\n`);
      expect((await hello('x')).code).toBe(0);
    };
    put('demo/waits.ts', WAITS);
    await save('of its build');
    const [first, ...others] = listChunks();
    expect(others).toEqual([]);
    const { child, ended } = start(['dist/demo/waits.js']);
    try {
      await once(child.stdout as Readable, 'data');
      await save('of the next');
      expect(listChunks()).toHaveLength(2);
      child.kill('SIGUSR2');
      expect((await ended).stdout).toBe('waits\nof its build\n');
    } finally {
      child.kill('SIGKILL');
    }
    await save('of the last');
    expect(listChunks()).toHaveLength(2);
    expect(listChunks()).not.toContain(first);
    for (const name of ['demo/waits.ts', 'demo/part'])
      rmSync(join(root, name), { recursive: true });
    await hello('x');
  });

  test('bundles the console where it, its client or a package changed, and nothing else does so', async () => {
    const countBuilds = () => readFileSync(join(root, 'dist/console/built'), 'utf8').length;
    const before = countBuilds();
    put('demo/third.ts', '');
    await hello('x');
    expect(countBuilds()).toBe(before);
    for (const path of ['console/src/main.tsx', 'clients/typescript/src/index.ts']) {
      const built = countBuilds();
      put(path, '');
      expect((await hello('x')).stderr).toBe('Building …\n');
      expect([path, countBuilds()]).toEqual([path, built + 1]);
      expect((await hello('x')).stderr).toBe('');
    }
  });

  test('does not run what does not compile, and recovers', async () => {
    put('demo/broken.ts', 'const = ;');
    const broken = await hello('x');
    expect(broken).toMatchObject({ code: 1, stdout: '' });
    expect(broken.stderr).toContain('demo/broken.ts:1:7');
    rmSync(join(root, 'demo/broken.ts'));
    expect((await hello('x')).stdout).toBe('["x"]\nchanged\n');
  });

  test('repairs a dist that a killed build left', async () => {
    rmSync(join(root, 'dist/.stamp'));
    rmSync(join(root, 'dist/demo/hello.js'));
    expect((await hello('x')).stdout).toBe('["x"]\nchanged\n');
  });

  test('installs the development packages again for a program in one of them', async () => {
    const record = join(root, 'node_modules/.package-lock.json');
    const { packages, ...rest } = JSON.parse(readFileSync(record, 'utf8'));
    delete packages['node_modules/vite'];
    writeFileSync(record, JSON.stringify({ ...rest, packages }));
    for (const path of ['vite', '.windlass-stamp'])
      rmSync(join(root, 'node_modules', path), { recursive: true });
    expect((await hello('x')).stderr).toBe('');
    const { code, stderr } = await start(['node_modules/vite/bin/vite.js']).ended;
    expect([code, stderr]).toEqual([0, expect.stringContaining('Installing packages')]);
  });

  test('only reads a built checkout of someone else', async context => {
    const skip = missingRoot();
    if (skip) skipTest(context, skip);
    rmSync(join(root, 'node_modules/.windlass-stamp'));
    const nobody = () => start(['dist/demo/hello.js', 'x'], { uid: 65_534 }).ended;
    expect(await nobody()).toEqual({ code: 0, stdout: '["x"]\nchanged\n', stderr: '' });
    put('demo/hello.ts', HELLO);
    const outdated = await nobody();
    expect(outdated.code).toBe(1);
    expect(outdated.stderr).toMatch(/^Windlass is not built .*EACCES.*\n$/);
  });
});
