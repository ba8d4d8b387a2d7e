import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildConsole, isConsoleBuilt } from './build-console.mjs';
import { listProgramSources } from './program-sources.mjs';
import { hashFiles, readStamp } from './stamp-files.mjs';

const BUNDLER = 'scripts/bundle-programs.mjs';

/** True if dist/ was built from the current sources and packages. */
export function isBuilt(checkout) {
  return areProgramsBuilt(checkout) && isConsoleBuilt(checkout);
}

function areProgramsBuilt({ root, packages }) {
  return readStamp(join(root, 'dist', '.stamp')) === fingerprintSources(root, packages);
}

/** Bundles the programs and the console, each if it changed. Returns a description of the problem, or undefined. */
export async function buildSources(checkout) {
  if (isBuilt(checkout)) return undefined;
  checkout.say('Building …');
  return (await buildPrograms(checkout)) ?? (await buildConsole(checkout));
}

/**
 * Bundles the programs without checking types, which takes seconds: see `npm run check`. The stamp, the hash of the
 * sources before the build, is written last: an interrupted build, or a file saved meanwhile, causes another build.
 * Returns a problem, or undefined.
 */
async function buildPrograms(checkout) {
  const { root, packages } = checkout;
  if (areProgramsBuilt(checkout)) return undefined;
  const fingerprint = fingerprintSources(root, packages);
  const stamp = join(root, 'dist', '.stamp');
  rmSync(stamp, { force: true });
  const { runCommand } = await import('./run-command.mjs');
  const args = [join(root, BUNDLER)];
  const problem = await runCommand({ root, command: process.execPath, args });
  if (problem !== undefined) return `The build of the programs ${problem}.`;
  writeFileSync(`${stamp}.new`, fingerprint);
  renameSync(`${stamp}.new`, stamp);
  return undefined;
}

/** Hashes contents, 10 ms for 300 files: modification times are wrong after a checkout or a copy. */
function fingerprintSources(root, packages) {
  const { modules, assets } = listProgramSources(root);
  const paths = [...modules, ...assets, BUNDLER, 'scripts/program-sources.mjs', 'tsconfig.json'];
  const files = paths.map(path => join(root, path));
  return `${packages}-${hashFiles(files, root)}`;
}
