import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Acquires a lock between processes of one machine and returns a function that releases it. Calls `onWait` once if
 * another process owns it.
 *
 * It is acquired, released and broken as that of cli/data-dir/lock.ts, which says why; its file is named after its owner
 * (pid and start time). Written by hand: it runs before any package is installed.
 */
export async function acquireLock(path, onWait) {
  const owner = `${process.pid}.${readStartTime(process.pid)}`;
  const own = join(dirname(path), `${basename(path)}.${owner}`);
  removeDeadCandidates(path);
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, owner), '');
  let waited = false;
  for (;;) {
    try {
      renameSync(own, path);
      return () => releaseLock(path, owner);
    } catch (error) {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') {
        rmSync(own, { recursive: true, force: true });
        throw error;
      }
    }
    const breaking = readOwners(path).filter(name => !isAlive(name));
    for (const name of breaking) unlinkIfThere(join(path, name));
    if (breaking.length > 0) continue;
    if (!waited) onWait();
    waited = true;
    await delay(100);
  }
}

function releaseLock(path, owner) {
  unlinkIfThere(join(path, owner));
  try {
    rmdirSync(path);
  } catch {
    // The next owner has its file in it already.
  }
}

/** Removes the folders of processes that died while they waited. */
function removeDeadCandidates(path) {
  const prefix = `${basename(path)}.`;
  for (const name of readdirSync(dirname(path))) {
    if (!name.startsWith(prefix) || isAlive(name.slice(prefix.length))) continue;
    rmSync(join(dirname(path), name), { recursive: true, force: true });
  }
}

function readOwners(path) {
  try {
    return readdirSync(path);
  } catch (error) {
    if (error.code === 'ENOENT') return [];
    throw error;
  }
}

function unlinkIfThere(path) {
  try {
    unlinkSync(path);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
}

function isAlive(owner) {
  const [pid, start] = owner.split('.');
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    if (error.code === 'ESRCH') return false;
  }
  return readStartTime(pid) === start;
}

/** The start time of a process, which a later process with the same pid does not share; `0` without /proc. */
function readStartTime(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return '0';
  }
}
