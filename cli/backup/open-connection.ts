import pg from 'pg';
import { clientOf, finderOf } from '../../shared/database/primary.ts';
import { socketErrors } from '../../shared/database/socket.ts';

/** No limit on a statement's time, as a disk may stall. A process that is cut off or suspended keeps no locks. */
const SETTINGS = `
  set statement_timeout = 0;
  set idle_in_transaction_session_timeout = '5min';
  set tcp_keepalives_idle = 10;
  set tcp_keepalives_interval = 5;
  set tcp_keepalives_count = 3;
  set tcp_user_timeout = '5min';`;

/**
 * A connection of its own, for statements of any length. The pool's driver (postgres.js 3.4.9) waits for ever after a
 * COPY that its reader held up.
 */
export async function openConnection(url: string, name: string): Promise<pg.Client> {
  const client = new (clientOf(url))({
    connectionString: finderOf(url).url,
    // Not `windlass-…`, whose long transactions the dispatcher ends.
    application_name: name,
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
  });
  // Without a listener a broken connection would end the process; the query rejects as well.
  client.on('error', error => socketErrors.add(error));
  await client.connect();
  await client.query(SETTINGS);
  return client;
}

/**
 * Does work in a transaction with the characteristics `how`, such as `read only`. Failed work is rolled back when the
 * caller ends the connection: after an interrupted COPY, as by a full disk, the connection answers no statement any
 * more.
 */
export async function inTransaction<T>(
  client: pg.Client,
  how: string,
  work: () => Promise<T>,
): Promise<T> {
  await client.query(`begin ${how}`);
  const result = await work();
  await client.query('commit');
  return result;
}

/** The names of columns, or of tables, for a statement. */
export const identifiers = (names: string[]): string =>
  names.map(name => pg.escapeIdentifier(name)).join(', ');
