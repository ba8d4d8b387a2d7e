import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { hash, readStamp } from './stamps.mjs';

/** Folders that are compiled; what is not TypeScript in them and of these kinds is copied beside it. */
const SOURCES = ['api', 'workers', 'shared', 'cli', 'servers', 'demo', 'scripts', 'bench'];
const ASSET = /\.(sh|html|css)$/;
const COMPILED = /(?<!\.test|\.d)\.ts$/;

/** True when dist was made from the present sources and packages. */
export function isBuilt({ root, packages }) {
  return readStamp(join(root, 'dist', '.stamp')) === fingerprintSources(root, packages);
}

/**
 * Compiles without checking types, which `npm run check` does: a start pays 0.3 s instead of 1 s.
 * The stamp names the sources as they were before the compiler read them, and is written last: a
 * build that died, or a file saved meanwhile, leaves a stamp that does not fit.
 * Returns what stands in the way, or undefined.
 */
export async function buildSources(checkout) {
  const { root, packages } = checkout;
  if (isBuilt(checkout)) return undefined;
  checkout.say('Building …');
  const fingerprint = fingerprintSources(root, packages);
  const dist = join(root, 'dist');
  const stamp = join(dist, '.stamp');
  // Without a stamp the incremental record may describe files that are no longer there.
  if (!existsSync(stamp)) rmSync(join(dist, '.tsbuildinfo'), { force: true });
  rmSync(stamp, { force: true });
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const { runCommand } = await import('./child.mjs');
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

/** What a source that was renamed or deleted left in dist would still be found by its importers. */
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

function listFiles(folder) {
  let entries;
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if (error.code === 'ENOENT') return [];
    throw error;
  }
  return entries.flatMap(entry => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return listFiles(path);
    return entry.isFile() ? [path] : [];
  });
}

/** Hashing the contents costs some 10 ms for 300 files; modification times would be cheaper and wrong. */
function fingerprintSources(root, packages) {
  const files = [
    ...listSources(root),
    join(root, 'tsconfig.json'),
    join(root, 'tsconfig.build.json'),
  ];
  return `${packages}-${hash(files, root)}`;
}
