import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** Folders that are compiled; what is not TypeScript in them and of these kinds is copied beside it. */
const SOURCES = ['api', 'workers', 'shared', 'embedded', 'demo', 'scripts'];
const ASSET = /\.(sh|html|css)$/;
const COMPILED = /(?<!\.test|\.d)\.ts$/;

/**
 * Installs and builds what is missing or outdated. Returns what stands in the way, as one line, or
 * undefined. A checkout that is complete is only read, so it may belong to someone else or be
 * read-only; `development` asks for the development packages even when nothing has to be built.
 */
export async function prepareCheckout({ root, development, say }) {
  const checkout = {
    root,
    development,
    say,
    packages: hash([join(root, 'package-lock.json')], root),
  };
  if (isReady(checkout)) return undefined;
  const folder = join(root, '.cache');
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    return `Windlass is not built, and ${root} cannot be written (${error.code}): run "node scripts/run.mjs" there once as its owner.`;
  }
  const { takeLock } = await import('./lock.mjs');
  const release = await takeLock(join(folder, 'prepare.lock'), () =>
    say('Waiting for another start that is installing or building …'),
  );
  try {
    // Another process may have done it all while this one waited.
    if (isReady(checkout)) return undefined;
    return (await installPackages(checkout)) ?? (await buildSources(checkout));
  } catch (error) {
    if (error.syscall === undefined) throw error;
    return `Windlass cannot be made ready in ${root}: ${error.message}`;
  } finally {
    release();
  }
}

function isReady(checkout) {
  return isBuilt(checkout) && hasPackages(checkout);
}

function isBuilt({ root, packages }) {
  return readStamp(join(root, 'dist', '.stamp')) === fingerprintSources(root, packages);
}

/** True when node_modules holds what package-lock.json names, by our stamp or by npm's own record. */
function hasPackages({ root, packages, development }) {
  const stamp = readStamp(join(root, 'node_modules', '.windlass-stamp'));
  // npm writes its record last and removes node_modules first: without it an install was cut short.
  const recordPath = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(recordPath)) return false;
  if (stamp === packages) return true;
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  const present = JSON.parse(readFileSync(recordPath, 'utf8')).packages;
  const complete = Object.keys(wanted).every(path => {
    const entry = wanted[path];
    if (path === '' || entry.link) return true;
    const found = present[path];
    if (found !== undefined) return found.version === entry.version;
    return entry.optional || entry.devOptional || (entry.dev && !development);
  });
  if (complete && development) tryToWrite(join(root, 'node_modules', '.windlass-stamp'), packages);
  return complete;
}

async function installPackages(checkout) {
  if (hasPackages({ ...checkout, development: true })) return undefined;
  checkout.say('Installing packages (npm ci) …');
  const problem = await run(checkout, 'npm', ['ci', '--include=dev', '--no-audit', '--no-fund']);
  if (problem !== undefined) return `npm ci ${problem}: the packages could not be installed.`;
  tryToWrite(join(checkout.root, 'node_modules', '.windlass-stamp'), checkout.packages);
  return undefined;
}

/**
 * Compiles without checking types, which `npm run check` does: a start pays 0.3 s instead of 1 s.
 * The stamp names the sources as they were before the compiler read them, and is written last: a
 * build that died, or a file saved meanwhile, leaves a stamp that does not fit.
 */
async function buildSources(checkout) {
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
  const problem = await run(checkout, process.execPath, [
    compiler,
    '-p',
    'tsconfig.build.json',
    '--noCheck',
  ]);
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

function hash(paths, root) {
  const sum = createHash('sha256');
  for (const path of [...paths].sort()) {
    let bytes;
    try {
      bytes = readFileSync(path);
    } catch (error) {
      // Deleted since it was listed; the next look differs.
      if (error.code === 'ENOENT') continue;
      throw error;
    }
    sum.update(`${relative(root, path)}\0${bytes.length}\0`).update(bytes);
  }
  return sum.digest('hex');
}

function readStamp(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  }
}

function tryToWrite(path, text) {
  try {
    writeFileSync(`${path}.${process.pid}`, text);
    renameSync(`${path}.${process.pid}`, path);
  } catch {
    // A read-only checkout is only compared again the next time.
  }
}

/** Runs a command on standard error's behalf; undefined when it succeeded, else how it ended. */
async function run({ root }, command, args) {
  const { spawn } = await import('node:child_process');
  // Standard output belongs to the program that is run afterwards.
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', 2, 2] });
  const passed = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  let stopped;
  const pass = signal => {
    stopped = signal;
    child.kill(signal);
  };
  for (const signal of passed) process.on(signal, pass);
  const problem = await new Promise(settle => {
    child.once('error', error => settle(`could not be started (${error.message})`));
    child.once('exit', (code, signal) =>
      settle(code === 0 ? undefined : `ended with ${signal ?? `exit code ${code}`}`),
    );
  });
  for (const signal of passed) process.off(signal, pass);
  return stopped === undefined ? problem : `was stopped by ${stopped}`;
}
