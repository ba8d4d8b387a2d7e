import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { ADVISORY_LOCKS } from '../../shared/database/advisory-locks.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { waitFor } from '../harness/wait-for.ts';

const IDLE_SECONDS = 3;
const compiled = new URL('../../dist/cli/backup/', import.meta.url).href;

/** A backup whose objects take for ever. */
const PROGRAM = `
const [base, url] = process.argv.slice(1);
const { openConnection } = await import(base + 'open-connection.js');
const { holdDeletions, whileHeld } = await import(base + 'hold-deletions.js');
const client = await openConnection(url, 'windlass backup');
await holdDeletions(client);
const options = { signal: new AbortController().signal, idleSeconds: ${IDLE_SECONDS} };
const copying = held => new Promise((_, reject) => {
  process.stdout.write('held ');
  held.addEventListener('abort', () => reject(new Error('aborted')));
});
await whileHeld(client, options, copying).catch(error => process.stdout.write(error.message));
process.exit();
`;

const at = withDatabase('backup_lock');

test('a backup holds deletions up while it copies objects, and not while it is suspended', async () => {
  const { db } = at.database();
  const ask = async (statement: ReturnType<typeof sql>) => {
    const [row] = await db.execute<{ is: boolean }>(statement);
    return row?.is ?? false;
  };
  const isFree = () =>
    ask(sql`select pg_try_advisory_xact_lock_shared(${ADVISORY_LOCKS.deletions}) as is`);
  const backup = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, compiled, at.url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    await once(backup.stdout, 'readable');
    const said = text(backup.stdout);
    const isLong = () =>
      ask(sql`select max(state_change - backend_start) > ${`${2 * IDLE_SECONDS}s`}::interval as is
        from pg_stat_activity where application_name = 'windlass backup'`);
    await waitFor(isLong, { what: 'longer work than it may be silent', timeoutMs: 20_000 });
    expect(await isFree()).toBe(false);
    backup.kill('SIGSTOP');
    await waitFor(isFree, { what: 'the lock to be free', timeoutMs: 20_000 });
    backup.kill('SIGCONT');
    expect(await said).toMatch(/^held the connection to the database, .*, was lost\.$/);
  } finally {
    backup.kill('SIGKILL');
  }
});
