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
 * Takes a lock between processes of one machine and returns the function that gives it back;
 * `onWait` is called once when another holds it.
 *
 * The lock is a folder with one file, named after its holder (pid and start time). A folder with a
 * file in it cannot be renamed over, an empty one can, by exactly one: so taking it is one rename,
 * giving it back or breaking a dead holder's is one unlink of *that holder's* name, and no one can
 * break a lock that has changed hands since it was looked at.
 */
export async function takeLock(path, onWait) {
  const holder = `${process.pid}.${readStartTime(process.pid)}`;
  const own = join(dirname(path), `${basename(path)}.${holder}`);
  removeDeadCandidates(path);
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, holder), '');
  let waited = false;
  for (;;) {
    try {
      renameSync(own, path);
      return () => releaseLock(path, holder);
    } catch (error) {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') {
        rmSync(own, { recursive: true, force: true });
        throw error;
      }
    }
    const breaking = readHolders(path).filter(name => !isAlive(name));
    for (const name of breaking) unlinkIfThere(join(path, name));
    if (breaking.length > 0) continue;
    if (!waited) onWait();
    waited = true;
    await delay(100);
  }
}

function releaseLock(path, holder) {
  unlinkIfThere(join(path, holder));
  try {
    rmdirSync(path);
  } catch {
    // The next holder has moved in already; an empty folder would have been as good.
  }
}

/** Those who died while they waited left the folder that they would have renamed. */
function removeDeadCandidates(path) {
  const prefix = `${basename(path)}.`;
  for (const name of readdirSync(dirname(path))) {
    if (!name.startsWith(prefix) || isAlive(name.slice(prefix.length))) continue;
    rmSync(join(dirname(path), name), { recursive: true, force: true });
  }
}

function readHolders(path) {
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

function isAlive(holder) {
  const [pid, start] = holder.split('.');
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    if (error.code === 'ESRCH') return false;
  }
  return readStartTime(pid) === start;
}

/** Tells a process from a later one with the same pid; `0` where there is no /proc. */
function readStartTime(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return '0';
  }
}
