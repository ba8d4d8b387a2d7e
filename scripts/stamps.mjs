import { createHash } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';

/** A hash of these files' names and contents; one that is not there counts as absent. */
export function hash(paths, root) {
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

export function readStamp(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** Writes a stamp in one step, where it can be written. */
export function tryToWrite(path, text) {
  try {
    writeFileSync(`${path}.${process.pid}`, text);
    renameSync(`${path}.${process.pid}`, path);
  } catch {
    // A read-only checkout is only compared again the next time.
  }
}
