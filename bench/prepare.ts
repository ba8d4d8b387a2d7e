import { chmodSync, mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Reads which parts of a benchmark are wanted from the arguments: without any, all. Throws for an unknown one. */
export function readParts(parts: string[]): (part: string) => boolean {
  const chosen = process.argv.slice(2);
  const unknown = chosen.find(part => !parts.includes(part));
  if (unknown) throw new Error(`There is no part ${unknown}; there is ${parts.join(', ')}.`);
  return part => chosen.length === 0 || chosen.includes(part);
}

/** A new directory, and one in it for a database. As root, Postgres runs as another user, who must be able to enter. */
export function makeDirectories(): { directory: string; dataDir: string } {
  const directory = mkdtempSync(join(tmpdir(), 'windlass-bench-'));
  const dataDir = join(directory, 'database');
  chmodSync(directory, 0o711);
  mkdirSync(dataDir, { mode: 0o711 });
  return { directory, dataDir };
}
