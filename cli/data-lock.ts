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
import { errnoOf, StartError } from './start-error.ts';

/** Longest address of a Unix socket, in bytes: 108 with the final zero on Linux, 104 on macOS. */
const LONGEST_ADDRESS = 103;
const WAIT_FOR_STOPPING_MS = 60_000;
const FORGOTTEN_AFTER_MS = 3_600_000;

export interface DataLock {
  /** From now on those who ask are told to wait instead of being refused. */
  announceStop(): void;
  release(): Promise<void>;
}

/**
 * Makes this process the only owner of a data directory until it ends, however it ends.
 *
 * The lock is the folder `lock` with one file, a Unix socket that its holder listens on: the kernel
 * tells a living holder from a dead one, across containers too, and no pid can be mistaken. A folder
 * with a file in it cannot be renamed over, an empty one can, by exactly one. So taking the lock is
 * one rename and breaking it one unlink of *that* holder's socket, whose name no other ever has.
 *
 * Throws StartError at once when another process holds it; waits up to 60 s for one that is stopping.
 */
export async function lockDataDir({
  dataDir,
  signal,
}: {
  dataDir: string;
  signal?: AbortSignal;
}): Promise<DataLock> {
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
    await renameInto({ dataDir, path, own, signal });
  } catch (error) {
    server.close();
    rmSync(own, { recursive: true, force: true });
    if (['EINVAL', 'ENOTSUP', 'EOPNOTSUPP'].includes(errnoOf(error) ?? '')) {
      throw new StartError(`The file system of ${dataDir} holds no Unix sockets.`, {
        hint: 'Set DATA_DIR to a directory on a local disk.',
        cause: error,
      });
    }
    throw error;
  }
  server.unref();
  removeForgotten(dataDir);
  return {
    announceStop() {
      stopping = true;
    },
    async release() {
      removeSocket(path, name);
      try {
        rmdirSync(path);
      } catch {
        // The next holder has moved in; an empty folder would have been as good.
      }
      await new Promise(resolve => server.close(resolve));
    },
  };
}

async function renameInto(options: {
  dataDir: string;
  path: string;
  own: string;
  signal?: AbortSignal;
}): Promise<void> {
  const { dataDir, path, own, signal } = options;
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
    for (const holder of listFolder(path)) {
      const state = await askHolder(path, holder);
      if (state === 'dead') removeSocket(path, holder);
      else if (state === 'running' || Date.now() > deadline) throw refuse(dataDir, holder);
      else waits = true;
    }
    if (waits) await delay(100, undefined, { signal });
  }
}

function refuse(dataDir: string, holder: string): StartError {
  const pid = holder.split('.')[0];
  return new StartError(`Another Windlass (process ${pid}) is running on ${dataDir}.`, {
    hint: 'Stop it first, or start this one with another DATA_DIR and PORT.',
  });
}

/** What the process behind a socket says of itself. One too busy to answer is running. */
function askHolder(folder: string, name: string): Promise<'running' | 'stopping' | 'dead'> {
  return new Promise((resolve, reject) => {
    const address = openAddress(folder, name);
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
      // A holder that dies between accepting and answering resets the connection.
      else if (failure && /^(ECONNREFUSED|ENOENT|ECONNRESET|EPIPE)$/.test(failure)) resolve('dead');
      else if (failure === 'EACCES') reject(explainForeign(folder));
      else resolve('running');
    });
  });
}

function explainForeign(folder: string): StartError {
  return new StartError(`${folder} belongs to another user.`, {
    hint: 'Start Windlass as the user who started it there before, or set another DATA_DIR.',
  });
}

async function listen(server: Server, folder: string, name: string): Promise<void> {
  const address = openAddress(folder, name);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(address.path, resolve);
    });
  } finally {
    address.close();
  }
}

/** A path to the socket that fits into an address: through an open directory where it is too long. */
function openAddress(folder: string, name: string): { path: string; close(): void } {
  const direct = join(folder, name);
  if (Buffer.byteLength(direct) <= LONGEST_ADDRESS || !existsSync('/proc/self/fd')) {
    return { path: direct, close() {} };
  }
  let descriptor: number;
  try {
    descriptor = openSync(folder, 'r');
  } catch (error) {
    // Given back meanwhile: connecting will say so.
    if (errnoOf(error) === 'ENOENT') return { path: '/proc/self/fd/none', close() {} };
    throw error;
  }
  return { path: `/proc/self/fd/${descriptor}/${name}`, close: () => closeSync(descriptor) };
}

function listFolder(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    if (errnoOf(error) === 'EACCES') throw explainForeign(path);
    throw error;
  }
}

function removeSocket(folder: string, name: string): void {
  try {
    unlinkSync(join(folder, name));
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}

/** Those who were killed while they waited left the folder that they would have renamed. */
function removeForgotten(dataDir: string): void {
  for (const name of readdirSync(dataDir)) {
    if (!/^lock\.\d+\.[0-9a-f]+$/.test(name)) continue;
    const found = statSync(join(dataDir, name), { throwIfNoEntry: false });
    if (!found || Date.now() - found.mtimeMs < FORGOTTEN_AFTER_MS) continue;
    rmSync(join(dataDir, name), { recursive: true, force: true });
  }
}
