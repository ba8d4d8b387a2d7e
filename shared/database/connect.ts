import { connect as connectSocket, type Socket } from 'node:net';
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { mendResults } from './mend-results.ts';

export type Db = PostgresJsDatabase;
/** A transaction, or the database itself: whatever a query can be sent on. */
export type Tx = Parameters<Parameters<Db['transaction']>[0]>[0] | Db;

/** A statement that takes longer is ended by the server. */
const STATEMENT_TIMEOUT_MS = 10_000;
/** A connection on which nothing was received or sent for so long is dead: postgres.js itself would wait for ever. */
const SILENCE_MS = 20_000;
const CONNECT_TIMEOUT_MS = 5_000;

export interface Database {
  db: Db;
  /** The plain client, for LISTEN and for a connection of one's own. */
  sql: postgres.Sql;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  /** Connections at most. */
  max?: number;
  /** The server ends a connection on which nothing was asked for so long. */
  idleSessionMs?: number;
}

export function openDatabase(
  url: string,
  { max = 10, idleSessionMs = 0 }: DatabaseOptions = {},
): Database {
  const options = {
    max,
    // Below SILENCE_MS: an idle connection is closed by us and never mistaken for a dead one.
    idle_timeout: 10,
    connect_timeout: CONNECT_TIMEOUT_MS / 1000,
    max_lifetime: null,
    connection: {
      application_name: process.title,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      // Who hangs in the middle of a transaction must not keep its locks.
      idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
      idle_session_timeout: idleSessionMs,
    },
    onnotice: () => {},
    // drizzle reads arrays itself; the driver's own query for their types, at each connect, rejects unseen when the database
    // goes away just then (porsager/postgres#1223), which would end the process.
    fetch_types: false,
    socket: openSocket,
  };
  const sql = mendResults(postgres(url, options));
  return {
    db: drizzle(sql, { casing: 'snake_case' }),
    sql,
    // end() can wait for ever after a failed query (porsager/postgres#1130); its own timeout destroys the sockets.
    close: () => sql.end({ timeout: 2 }),
  };
}

/** Errors of the sockets to the database; the same codes come from other places too. */
const brokenLinks = new WeakSet<object>();

/**
 * postgres.js has no deadline of its own for a link that went silent; the socket's inactivity is one. The socket is
 * handed over while it connects, and what goes wrong reaches the driver as the socket's error: a promise that rejected
 * instead would take the connection out of its pool for ever.
 */
function openSocket(options: { host: string[]; port: number[]; path?: string | false }): Socket {
  const target = options.path
    ? { path: options.path }
    : { host: options.host[0], port: options.port[0] ?? 5432 };
  const socket = connectSocket({ ...target, noDelay: true });
  socket.on('error', error => brokenLinks.add(error));
  let limit = 'connecting to the database timed out';
  socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy(new Error(limit)));
  socket.once('connect', () => {
    limit = 'the database connection went silent';
    socket.setTimeout(SILENCE_MS);
  });
  // A close without an error, in the middle of a transaction, makes postgres.js 3.4.9 write to a socket that it has let go
  // of: an uncaught TypeError, and the end of the process.
  socket.on('end', () => {
    if (!socket.writableEnded) socket.destroy(new Error('the database closed the connection'));
  });
  return socket;
}

/**
 * True for errors that say the database cannot be reached or is going down or coming up, whatever was asked of it:
 * classes 08 (connection), 57P (shutdown, start-up, killed) and 53 (no resources) of PostgreSQL's error codes, 57014
 * (statement timeout), 25006 (it became a standby), the driver's own, and those of its sockets.
 */
export function isDatabaseDown(error: unknown): boolean {
  for (let e: unknown = error; e instanceof Error; e = e.cause) {
    const code = (e as { code?: unknown }).code;
    if (brokenLinks.has(e)) return true;
    if (typeof code !== 'string') continue;
    if (/^CONNECTION_(CLOSED|ENDED|DESTROYED)$|^CONNECT_TIMEOUT$/.test(code)) return true;
    if (e.name === 'PostgresError' && /^(08|57P|53)|^57014$|^25006$/.test(code)) return true;
  }
  return false;
}

/** The SQLSTATE of a failed statement, through drizzle's wrapping. */
export function sqlState(error: unknown): string | undefined {
  for (let e: unknown = error; e instanceof Error; e = e.cause) {
    const code = (e as { code?: unknown }).code;
    if (typeof code === 'string') return code;
  }
  return undefined;
}
