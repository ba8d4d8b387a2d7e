import { createHash } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';

/** A hash of the names and contents of these files. Ignores missing ones. */
export function hashFiles(paths, root) {
  const sum = createHash('sha256');
  for (const path of [...paths].sort()) {
    let bytes;
    try {
      bytes = readFileSync(path);
    } catch (error) {
      // It was deleted after it was listed.
      if (error.code === 'ENOENT') continue;
      throw error;
    }
    sum.update(`${relative(root, path)}\0${bytes.length}\0`).update(bytes);
  }
  return sum.digest('hex');
}

/** The content of a stamp file, undefined if it does not exist. */
export function readStamp(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** Writes a stamp file atomically, if it can be written. */
export function tryToWriteStamp(path, text) {
  try {
    writeFileSync(`${path}.${process.pid}`, text);
    renameSync(`${path}.${process.pid}`, path);
  } catch {
    // Without a stamp a read-only checkout is compared again at the next start.
  }
}
