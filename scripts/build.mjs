import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { buildConsole, isConsoleBuilt } from './build-console.mjs';
import { listFiles } from './list-files.mjs';
import { hashFiles, readStamp } from './stamp-files.mjs';

/** The compiled folders. Files of the kinds in ASSET are copied. */
const SOURCES = [
  'api',
  'workers',
  'shared',
  'cli',
  'clients',
  'servers',
  'demo',
  'scripts',
  'bench',
];
const ASSET = /\.(sh|html|css)$/;
const COMPILED = /(?<!\.test|\.d)\.ts$/;

/** True if dist/ was built from the current sources and packages. */
export function isBuilt(checkout) {
  return areProgramsBuilt(checkout) && isConsoleBuilt(checkout);
}

function areProgramsBuilt({ root, packages }) {
  return readStamp(join(root, 'dist', '.stamp')) === fingerprintSources(root, packages);
}

/** Compiles the programs and bundles the console, each if it changed. Returns a description of the problem, or undefined. */
export async function buildSources(checkout) {
  if (isBuilt(checkout)) return undefined;
  checkout.say('Building …');
  return (await buildPrograms(checkout)) ?? (await buildConsole(checkout));
}

/**
 * Compiles the sources without checking types, which takes seconds: see `npm run check`. The stamp, the hash of the
 * sources before the compilation, is written last: an interrupted build, or a file saved meanwhile, causes another
 * build. Returns a problem, or undefined.
 */
async function buildPrograms(checkout) {
  const { root, packages } = checkout;
  if (areProgramsBuilt(checkout)) return undefined;
  const fingerprint = fingerprintSources(root, packages);
  const dist = join(root, 'dist');
  const stamp = join(dist, '.stamp');
  // Without a stamp the last build was interrupted: .tsbuildinfo may list files that do not exist.
  if (!existsSync(stamp)) rmSync(join(dist, '.tsbuildinfo'), { force: true });
  rmSync(stamp, { force: true });
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const { runCommand } = await import('./run-command.mjs');
  const args = [compiler, '-p', 'tsconfig.build.json', '--noCheck'];
  const problem = await runCommand({ root, command: process.execPath, args });
  if (problem !== undefined) return `The TypeScript compiler ${problem}.`;
  const outputs = new Set();
  for (const path of listSources(root)) {
    const target = join(dist, relative(root, path).replace(COMPILED, '.js'));
    outputs.add(target);
    if (!ASSET.test(path)) continue;
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(path, `${target}.new`);
    renameSync(`${target}.new`, target);
  }
  removeOrphans(dist, outputs);
  writeFileSync(`${stamp}.new`, fingerprint);
  renameSync(`${stamp}.new`, stamp);
  return undefined;
}

/** Removes the outputs of deleted sources, which other modules could still import. */
function removeOrphans(dist, outputs) {
  for (const name of SOURCES) {
    for (const path of listFiles(join(dist, name))) {
      if (!outputs.has(path.replace(/\.map$/, ''))) rmSync(path, { force: true });
    }
  }
}

function listSources(root) {
  return SOURCES.flatMap(name => listFiles(join(root, name))).filter(
    path => COMPILED.test(path) || ASSET.test(path),
  );
}

/** Hashes contents, 10 ms for 300 files: modification times are wrong after a checkout or a copy. */
function fingerprintSources(root, packages) {
  const files = [
    ...listSources(root),
    join(root, 'tsconfig.json'),
    join(root, 'tsconfig.build.json'),
  ];
  return `${packages}-${hashFiles(files, root)}`;
}
