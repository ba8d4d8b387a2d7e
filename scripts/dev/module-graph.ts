import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A relative path in a string: of an import, or of a file that is read beside the module. */
const RELATIVE = /['"`](\.{1,2}\/[^'"`\n]+)['"`]/g;

/**
 * The compiled files that a program can reach: all of its own folder, some of which it loads by computed names, and what
 * these import from elsewhere.
 */
export function listReachable(folder: string): Set<string> {
  const found = new Set(listFiles(folder));
  // A set may grow while it is walked.
  for (const path of found) {
    if (!path.endsWith('.js')) continue;
    for (const [, relative = ''] of readFileSync(path, 'utf8').matchAll(RELATIVE)) {
      const target = join(dirname(path), relative);
      if (/\.\w+$/.test(target) && existsSync(target)) found.add(target);
    }
  }
  return found;
}

/** Every file below a folder, but source maps; none where there is no such folder. */
export function listFiles(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter(entry => entry.isFile() && !entry.name.endsWith('.map'))
    .map(entry => join(entry.parentPath, entry.name));
}
