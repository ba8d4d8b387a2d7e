import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readStamp, tryToWrite } from './stamps.mjs';

/** True when node_modules holds what package-lock.json names, by our stamp or by npm's own record. */
export function hasPackages({ root, packages, development }) {
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

/** Returns what stands in the way, or undefined. */
export async function installPackages(checkout) {
  if (hasPackages({ ...checkout, development: true })) return undefined;
  const { runCommand } = await import('./child.mjs');
  const command = namesEveryPlatform(checkout) ? ['ci'] : ['install', '--no-save'];
  checkout.say(`Installing packages (npm ${command.join(' ')}) …`);
  const args = [...command, '--include=dev', '--no-audit', '--no-fund'];
  const problem = await runCommand({ root: checkout.root, command: 'npm', args });
  if (problem !== undefined) return `npm ${command[0]} ${problem}: the packages are not installed.`;
  tryToWrite(join(checkout.root, 'node_modules', '.windlass-stamp'), checkout.packages);
  return undefined;
}

/**
 * A lockfile made where the registry lacked another platform's optional packages names none of them.
 * `npm ci` refuses such a one; `npm install` takes what it names as exactly, and leaves it as it is.
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
