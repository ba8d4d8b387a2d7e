import type pg from 'pg';
import { ADVISORY_LOCKS } from '../../shared/database/advisory-locks.ts';
import { sqlState } from '../../shared/database/connect.ts';
import { CommandError } from '../command-error.ts';

const LOCK_NOT_AVAILABLE = '55P03';
/** The time without a sign of life after which the database takes the lock back: this process is suspended, or cut off. */
const IDLE_SECONDS = 60;

/** From now until the connection ends the service deletes no object. Waits for the statements that ask for the lock now and then. */
export async function holdDeletions(client: pg.Client): Promise<void> {
  await client.query(`set lock_timeout = '5s'`);
  try {
    await client.query('select pg_advisory_lock($1)', [ADVISORY_LOCKS.deletions]);
  } catch (cause) {
    if (sqlState(cause) !== LOCK_NOT_AVAILABLE) throw cause;
    throw new CommandError('Another backup of this database is under way.', {
      hint: 'Wait for its end.',
      cause,
    });
  }
}

/** Does work that needs the lock and not the connection. The signal is aborted, and this throws, where the lock is lost. */
export async function whileHeld(
  client: pg.Client,
  { signal, idleSeconds = IDLE_SECONDS }: { signal: AbortSignal; idleSeconds?: number },
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const lost = new AbortController();
  const ping = () => client.query('select').catch((cause: unknown) => lost.abort(lockLost(cause)));
  await client.query(`set idle_session_timeout = '${idleSeconds}s'`);
  const timer = setInterval(ping, (idleSeconds * 1_000) / 6);
  try {
    await work(AbortSignal.any([signal, lost.signal]));
    await ping();
  } finally {
    clearInterval(timer);
    // It says more than what failed for it.
    lost.signal.throwIfAborted();
  }
}

const lockLost = (cause: unknown) =>
  new CommandError(
    'the connection to the database, for which the service kept all objects, was lost.',
    {
      hint: 'Make the backup again.',
      cause,
    },
  );
