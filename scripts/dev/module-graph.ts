import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A relative path in a string: of an import or of a file that the module reads. */
const RELATIVE = /['"`](\.{1,2}\/[^'"`\n]+)['"`]/g;

/**
 * The compiled files that a program can reach: those of its folder, because it loads some by computed names, and their
 * imports from other folders.
 */
export function listReachable(folder: string): Set<string> {
  const found = new Set(listFiles(folder));
  // The iteration includes files that are added meanwhile.
  for (const path of found) {
    if (!path.endsWith('.js')) continue;
    for (const [, relative = ''] of readFileSync(path, 'utf8').matchAll(RELATIVE)) {
      const target = join(dirname(path), relative);
      if (/\.\w+$/.test(target) && existsSync(target)) found.add(target);
    }
  }
  return found;
}

/** The files below a folder, except source maps; none if it does not exist. */
export function listFiles(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter(entry => entry.isFile() && !entry.name.endsWith('.map'))
    .map(entry => join(entry.parentPath, entry.name));
}
