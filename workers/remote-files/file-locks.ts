import { ADVISORY_LOCKS } from '../../shared/database/advisory-locks.ts';
import type { DirectConnection } from '../../shared/database/direct-connection.ts';
import { conflict } from '../../shared/errors/errors.ts';
import { abortable, sleep } from '../../shared/process/abort.ts';
import { limitTime } from '../../shared/process/limit-time.ts';
import { Turns } from '../ssh/turns.ts';

/** A change takes milliseconds, unless its host hangs. */
const WAIT_MS = 20_000;
/** Another process that waits for a lock asks for it so often. */
const LOOK_MS = 50;

/** Those of this process share a connection, which PostgreSQL gives the same lock twice. */
const turns = new Turns();

export interface LockedFile {
  /** The database's connection that a lock lasts as long as. */
  direct: DirectConnection;
  host: string;
  account: string;
  path: string;
  /** Default 20,000. */
  waitMs?: number;
}

/**
 * Does work while no other worker does any for the same file. The lock is an advisory one of PostgreSQL on the direct
 * connection, so it costs no connection, and whoever dies or hangs loses it (decision 49). Throws `conflict` where
 * another one has it for too long, or the signal's reason.
 */
export async function withFileLock<T>(
  { direct, host, account, path, waitMs = WAIT_MS }: LockedFile,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const name = [host, account, path].join('\n');
  const turn = turns.of(name);
  const key = [ADVISORY_LOCKS.files, name];
  try {
    await limitTime(signal, waitMs, async limited => {
      await abortable(turn.take(), limited);
      while (!(await ask(direct, 'pg_try_advisory_lock', key))) {
        await sleep(limited, LOOK_MS);
        limited.throwIfAborted();
      }
    }).catch((error: unknown) => {
      signal.throwIfAborted();
      throw error instanceof Error && error.name === 'TimeoutError' ? goesOn(path) : error;
    });
    try {
      return await work();
    } finally {
      // Without the connection there is no lock.
      await ask(direct, 'pg_advisory_unlock', key).catch(() => {});
    }
  } finally {
    turn.end();
  }
}

async function ask(direct: DirectConnection, call: string, key: unknown[]): Promise<boolean> {
  const [row] = await direct.query<{ yes: boolean }>(
    `select ${call}($1, hashtext($2)) as yes`,
    key,
  );
  return row?.yes === true;
}

const goesOn = (path: string) =>
  conflict(
    `another change of ${path} goes on.`,
    'Try again. Where this lasts, check that the disk of the path answers on the host.',
  );
