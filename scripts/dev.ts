/**
 * `npm run dev`: the embedded service, rebuilt when a source is saved. Only the processes that can reach a changed
 * file are restarted. The supervisor restarts them; it is restarted itself if it can reach the file.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chooseDataDir } from '../cli/data-dir/choose-data-dir.ts';
import { packageRoot } from '../shared/process/package-root.ts';
import { DevStack } from './dev/dev-stack.ts';
import { listFiles, listReachable } from './dev/module-graph.ts';
import { watchFolders } from './dev/watch-folders.ts';

type PrepareCheckout = (options: {
  root: string;
  development: boolean;
  say: (line: string) => void;
}) => Promise<string | undefined>;

const root = fileURLToPath(packageRoot);
const dist = join(root, 'dist');
const migrations = join(root, 'migrations');
/** The folders of the programs, what they and the pages share, and the pages that the API serves. */
const FOLDERS = ['api', 'workers', 'cli', 'shared', 'clients/typescript/src', 'console'];
/** Those of dist/ that the programs and pages consist of. */
const OUTPUTS = ['api', 'workers', 'cli', 'shared', 'chunks', 'console'];
const CACHE = join(root, '.cache', 'dev');
/** What `scripts/run.mjs` does runs in this process: the start of another one takes a tenth of the time of a restart. */
const { prepareCheckout }: { prepareCheckout: PrepareCheckout } = await import(
  new URL('scripts/prepare-checkout.mjs', packageRoot).href
);
const OPTIONS: SpawnOptions = { cwd: root, stdio: ['ignore', 2, 2] };

const { dataDir, notice } = chooseDataDir({ given: process.env.DATA_DIR, checkout: CACHE });
if (notice) console.error(notice);
const stack = new DevStack({
  command: [process.execPath, join(dist, 'scripts', 'dev', 'preloaded-up.js'), 'up'],
  // Set, though empty, so that a .env in the checkout cannot name other servers than the embedded ones, nor what needs them.
  environment: {
    DATABASE_URL: '',
    DATABASE_DIRECT_URL: '',
    REDIS_URL: '',
    S3_ENDPOINT: '',
    VIDEO_DELIVERY: '',
    ...process.env,
    DATA_DIR: dataDir,
    // For what the supervisor starts, too.
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --enable-source-maps`,
  },
});
let compiled = readCompiled();
let typeCheck: ChildProcess | undefined;
/** Aborted by a change that is saved meanwhile. */
let rebuilding: AbortController | undefined;

stack.start();
const watcher = watchFolders([...FOLDERS.map(name => join(root, name)), migrations], onSave);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, async () => {
    watcher.close();
    stopTypeCheck();
    await stack.stop();
    process.exit(0);
  });
}

async function onSave(): Promise<void> {
  if (rebuilding) return rebuilding.abort();
  for (let again = true; again; again = rebuilding.signal.aborted) {
    rebuilding = new AbortController();
    await rebuild(rebuilding.signal);
  }
  rebuilding = undefined;
}

async function rebuild(savedAgain: AbortSignal): Promise<void> {
  const began = performance.now();
  stopTypeCheck();
  const problem = await prepareCheckout({ root, development: true, say: console.error });
  if (problem !== undefined) return console.error(`${problem}\nNothing is restarted.`);
  const before = compiled;
  compiled = readCompiled();
  const changed = [...new Set([...before.keys(), ...compiled.keys()])].filter(
    path => before.get(path) !== compiled.get(path),
  );
  if (changed.length === 0) return;
  const restarted = await restart(changed, savedAgain);
  if (restarted.size === 0) return;
  const ms = Math.round(performance.now() - began);
  const names = [...restarted].map(([name, pid]) => `${name} (${pid})`);
  console.error(`Restarted in ${ms} ms: ${names.join(', ')}`);
  checkTypes();
}

async function restart(changed: string[], savedAgain: AbortSignal): Promise<Map<string, number>> {
  const isReached = (folder: string) => {
    const reachable = listReachable(join(dist, folder));
    // A removed file is not reachable any more.
    return changed.some(path => reachable.has(path) || path.startsWith(join(dist, folder) + sep));
  };
  if (isReached('cli') || changed.some(path => path.startsWith(migrations)))
    return stack.restartAll(savedAgain);
  // It has read the pages at its first request for them.
  const servesOther = changed.some(path => path.startsWith(join(dist, 'console') + sep));
  const [api, workers] = [isReached('api') || servesOther, isReached('workers')];
  if (!api && !workers) return new Map();
  return stack.restart(name => (/^api\b/.test(name) ? api : workers), savedAgain);
}

/** The contents of all that the programs consist of. */
function readCompiled(): Map<string, string> {
  const paths = OUTPUTS.flatMap(name => listFiles(join(dist, name)));
  return new Map(
    [...paths, ...listFiles(migrations)].map(path => [path, readFileSync(path, 'latin1')]),
  );
}

/**
 * Checks the types after a restart, because that takes seconds; the build finds only syntax errors. The next change
 * cancels it.
 */
function checkTypes(): void {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const record = join(CACHE, 'types.tsbuildinfo');
  const args = [compiler, '-p', '.', '--incremental', '--tsBuildInfoFile', record];
  typeCheck = spawn(process.execPath, args, { ...OPTIONS, detached: true });
  if (typeCheck.pid !== undefined) setPriority(typeCheck.pid, 10);
}

/** Kills the process group, because tsc is a script that waits for the compiler. */
function stopTypeCheck(): void {
  if (typeCheck?.pid === undefined || typeCheck.exitCode !== null) return;
  try {
    process.kill(-typeCheck.pid, 'SIGKILL');
  } catch {
    // It has just ended.
  }
}
