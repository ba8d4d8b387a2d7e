import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { listFiles } from './list-files.mjs';
import { hashFiles, readStamp } from './stamp-files.mjs';

/** What the console is bundled from. */
const SOURCES = ['console', 'clients/typescript/src'];

const stampOf = root => join(root, 'dist', '.console-stamp');

/** True if dist/console was built from the current sources and packages. */
export function isConsoleBuilt({ root, packages }) {
  return readStamp(stampOf(root)) === fingerprint(root, packages);
}

/** Bundles the web console into dist/console, in a second or two. Returns a description of the problem, or undefined. */
export async function buildConsole(checkout) {
  const { root, packages } = checkout;
  if (isConsoleBuilt(checkout)) return undefined;
  // From before the build: a file that is saved meanwhile makes the next one necessary.
  const built = fingerprint(root, packages);
  const stamp = stampOf(root);
  rmSync(stamp, { force: true });
  const vite = join(root, 'node_modules', 'vite', 'bin', 'vite.js');
  if (!existsSync(vite)) return 'The console is not built: vite is not installed.';
  const { runCommand } = await import('./run-command.mjs');
  const args = [vite, 'build', '--config', 'console/vite.config.ts', '--logLevel', 'warn'];
  const problem = await runCommand({ root, command: process.execPath, args });
  if (problem !== undefined) return `The build of the console ${problem}.`;
  writeFileSync(`${stamp}.new`, built);
  renameSync(`${stamp}.new`, stamp);
  return undefined;
}

function fingerprint(root, packages) {
  const files = SOURCES.flatMap(name => listFiles(join(root, name)));
  const sources = files.filter(path => !path.endsWith('.test.ts'));
  return `${packages}-${hashFiles(sources, root)}`;
}
