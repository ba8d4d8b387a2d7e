import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import { createConnection, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CommandError, errnoOf } from '../command-error.ts';
import { explainDataDirError } from './explain-data-dir-error.ts';

/** Longest address of a Unix socket, in bytes: 108 with the final zero on Linux, 104 on macOS. */
const LONGEST_ADDRESS = 103;
const WAIT_FOR_STOPPING_MS = 60_000;
const STALE_AFTER_MS = 3_600_000;

export interface DataDirLock {
  /** From now on other processes wait for the lock instead of failing. */
  announceStop(): void;
  release(): Promise<void>;
}

/**
 * Makes this process the only owner of a data directory until it releases the lock or dies.
 *
 * The lock is the directory `lock` with one file, a Unix socket on which the owner listens. The kernel tells whether the
 * owner is alive, across containers too, which a pid cannot. A rename replaces an empty directory, but never one with a
 * file, and one of several renames succeeds. So a rename acquires the lock, and removing a dead owner's socket, whose
 * name is unique, breaks it.
 *
 * Throws CommandError if another process owns the lock, after up to 60 s if that is stopping.
 */
export async function lockDataDir({
  dataDir,
  signal,
}: {
  dataDir: string;
  signal?: AbortSignal;
}): Promise<DataDirLock> {
  const path = join(dataDir, 'lock');
  const name = `${process.pid}.${randomBytes(6).toString('hex')}`;
  const own = `${path}.${name}`;
  let stopping = false;
  const server = createServer(socket => {
    socket.on('error', () => socket.destroy());
    socket.end(stopping ? 'stopping' : 'running');
  });
  try {
    mkdirSync(own, { mode: 0o700 });
    await listen(server, own, name);
    await acquire(dataDir, own, signal);
  } catch (error) {
    server.close();
    rmSync(own, { recursive: true, force: true });
    if (['EINVAL', 'ENOTSUP', 'EOPNOTSUPP'].includes(errnoOf(error) ?? '')) {
      throw new CommandError(`The file system of ${dataDir} does not support Unix sockets.`, {
        hint: 'Set DATA_DIR to a directory on a local disk.',
        cause: error,
      });
    }
    throw explainDataDirError(error, own);
  }
  server.unref();
  removeStaleDirectories(dataDir);
  return {
    announceStop() {
      stopping = true;
    },
    async release() {
      removeSocket(path, name);
      try {
        rmdirSync(path);
      } catch {
        // The next owner has its socket in it already.
      }
      await new Promise(resolve => server.close(resolve));
    },
  };
}

/** Renames `own` to `<dataDir>/lock`. */
async function acquire(dataDir: string, own: string, signal?: AbortSignal): Promise<void> {
  const path = join(dataDir, 'lock');
  const deadline = Date.now() + WAIT_FOR_STOPPING_MS;
  for (;;) {
    signal?.throwIfAborted();
    try {
      renameSync(own, path);
      return;
    } catch (error) {
      const code = errnoOf(error);
      if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
    }
    let waits = false;
    for (const owner of listDirectory(path)) {
      const state = await askOwner(path, owner);
      if (state === 'dead') removeSocket(path, owner);
      else if (state === 'running' || Date.now() > deadline) throw refuse(dataDir, owner);
      else waits = true;
    }
    if (waits) await delay(100, undefined, { signal });
  }
}

/** Whether a process has the lock at this moment. */
export async function isDataDirInUse(dataDir: string): Promise<boolean> {
  const path = join(dataDir, 'lock');
  for (const owner of listDirectory(path))
    if ((await askOwner(path, owner)) !== 'dead') return true;
  return false;
}

/** Another process has the lock, and is not stopping. */
export class DataDirInUse extends CommandError {}

function refuse(dataDir: string, owner: string): DataDirInUse {
  const pid = owner.split('.')[0];
  return new DataDirInUse(`Another Windlass (process ${pid}) is running on ${dataDir}.`, {
    hint: 'Stop it first, or start this one with another DATA_DIR and PORT.',
  });
}

/** Asks the owner of a socket for its state. An owner that does not answer within 2 s is running. */
function askOwner(directory: string, name: string): Promise<'running' | 'stopping' | 'dead'> {
  return new Promise((resolve, reject) => {
    const address = openAddress(directory, name);
    const socket = createConnection(address.path);
    let answer = '';
    let failure: string | undefined;
    socket.setTimeout(2_000, () => socket.destroy());
    socket.setEncoding('utf8');
    socket.on('data', text => {
      answer += text;
    });
    socket.on('error', error => {
      failure = errnoOf(error) ?? error.message;
    });
    socket.on('close', () => {
      address.close();
      if (answer === 'stopping') resolve('stopping');
      // An owner that dies before it answers resets the connection.
      else if (failure && /^(ECONNREFUSED|ENOENT|ECONNRESET|EPIPE)$/.test(failure)) resolve('dead');
      else if (failure === 'EACCES') reject(foreignLockError(directory));
      else resolve('running');
    });
  });
}

function foreignLockError(directory: string): CommandError {
  return new CommandError(`${directory} belongs to another user.`, {
    hint: 'Start Windlass as the user who started it there before, or set another DATA_DIR.',
  });
}

async function listen(server: Server, directory: string, name: string): Promise<void> {
  const address = openAddress(directory, name);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(address.path, resolve);
    });
  } finally {
    address.close();
  }
}

/** A path of the socket that fits into an address: if it is too long, by the descriptor of its directory. */
function openAddress(directory: string, name: string): { path: string; close(): void } {
  const direct = join(directory, name);
  if (Buffer.byteLength(direct) <= LONGEST_ADDRESS || !existsSync('/proc/self/fd')) {
    return { path: direct, close() {} };
  }
  let descriptor: number;
  try {
    descriptor = openSync(directory, 'r');
  } catch (error) {
    // The lock was released meanwhile: connecting fails.
    if (errnoOf(error) === 'ENOENT') return { path: '/proc/self/fd/none', close() {} };
    throw error;
  }
  return { path: `/proc/self/fd/${descriptor}/${name}`, close: () => closeSync(descriptor) };
}

function listDirectory(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    if (errnoOf(error) === 'EACCES') throw foreignLockError(path);
    throw error;
  }
}

function removeSocket(directory: string, name: string): void {
  try {
    unlinkSync(join(directory, name));
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}

/** Removes the directories of processes that were killed while they waited for the lock. */
function removeStaleDirectories(dataDir: string): void {
  for (const name of readdirSync(dataDir)) {
    if (!/^lock\.\d+\.[0-9a-f]+$/.test(name)) continue;
    const found = statSync(join(dataDir, name), { throwIfNoEntry: false });
    if (!found || Date.now() - found.mtimeMs < STALE_AFTER_MS) continue;
    rmSync(join(dataDir, name), { recursive: true, force: true });
  }
}
