import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readStamp, tryToWriteStamp } from './stamp-files.mjs';

/** True if node_modules has the packages of package-lock.json, according to the stamp or to npm's own record. */
export function hasPackages({ root, packages, development }) {
  const stamp = readStamp(join(root, 'node_modules', '.windlass-stamp'));
  // npm removes node_modules first and writes its record last: without one, an installation was interrupted.
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
  if (complete && development)
    tryToWriteStamp(join(root, 'node_modules', '.windlass-stamp'), packages);
  return complete;
}

/** Installs the packages, if necessary. Returns a description of the problem, or undefined. */
export async function installOwnPackages(checkout) {
  if (hasPackages({ ...checkout, development: true })) return undefined;
  const { runCommand } = await import('./run-command.mjs');
  const command = namesEveryPlatform(checkout) ? ['ci'] : ['install', '--no-save'];
  checkout.say(`Installing packages (npm ${command.join(' ')}) …`);
  const args = [...command, '--include=dev', '--no-audit', '--no-fund'];
  const problem = await runCommand({ root: checkout.root, command: 'npm', args });
  if (problem !== undefined) return `npm ${command[0]} ${problem}: the packages are not installed.`;
  tryToWriteStamp(join(checkout.root, 'node_modules', '.windlass-stamp'), checkout.packages);
  return undefined;
}

/**
 * Whether the lockfile names the optional packages of other platforms. If the registry lacked them, it does not, and
 * `npm ci` refuses it; `npm install --no-save` installs the same versions without changing it.
 */
function namesEveryPlatform({ root }) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return Object.keys(packages).every(path =>
    Object.keys(packages[path].optionalDependencies ?? {}).every(name => {
      for (let at = path; ; at = at.slice(0, Math.max(at.lastIndexOf('/node_modules/'), 0))) {
        if (packages[`${at}${at && '/'}node_modules/${name}`] !== undefined) return true;
        if (at === '') return false;
      }
    }),
  );
}
