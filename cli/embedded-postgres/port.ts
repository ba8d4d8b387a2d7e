import { randomInt } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { errnoOf } from '../command-error.ts';
import { writeAtomically } from '../write-atomically.ts';

/**
 * Below the kernel's range of ephemeral ports: while Postgres is down, a connection of another program (or of a client that
 * connects to itself) could take such a port.
 */
const LOWEST = 20_000;
const HIGHEST = 32_767;
const TRIES = 100;

/** The port of the last run if it is free, so that saved URLs keep working; otherwise a random free one. */
export async function choosePort(dataDir: string): Promise<number> {
  const path = join(dataDir, 'postgres.port');
  const last = Number(await readFile(path, 'utf8').catch(() => '0'));
  if (last > 0 && (await isFree(last))) return last;
  const port = await findFreePort();
  await writeAtomically(path, String(port));
  return port;
}

async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const port = randomInt(LOWEST, HIGHEST + 1);
    if (await isFree(port)) return port;
  }
  throw new Error(`No free port was found between ${LOWEST} and ${HIGHEST}.`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', error => {
      if (errnoOf(error) === 'EADDRINUSE' || errnoOf(error) === 'EACCES') resolve(false);
      else reject(error);
    });
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () =>
      server.close(() => resolve(true)),
    );
  });
}
