import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { openPool } from './pool.ts';
import { CONNECT_TIMEOUT_MS, openSocket, socketErrors } from './socket.ts';

export type Db = PostgresJsDatabase;
/** A transaction, or the database itself: whatever a query can be sent on. */
export type Tx = Parameters<Parameters<Db['transaction']>[0]>[0] | Db;

/** A statement that takes longer is ended by the server. */
const STATEMENT_TIMEOUT_MS = 10_000;

export interface Database {
  db: Db;
  /** The plain client. */
  sql: postgres.Sql;
  /** `onListening` is called each time that it begins to be heard: the first one, and after each break. */
  listen(
    channel: string,
    onPayload: (payload: string) => void,
    onListening?: () => void,
  ): Promise<{ unlisten(): Promise<void> }>;
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
    // Below the socket's limit for silence: an idle connection is closed by us and never mistaken for a dead one.
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
  };
  const sql = openPool(url, options);
  // LISTEN has a connection of its own, which comes back by itself; it is made when it is first asked for.
  const listener = postgres(url, { ...options, max: 1, socket: openSocket } as typeof options);
  // end() can wait for ever after a failed query (porsager/postgres#1130); its own timeout destroys the sockets.
  const close = async () => {
    await Promise.all([sql.end({ timeout: 2 }), listener.end({ timeout: 2 })]);
  };
  return {
    db: drizzle(sql, { casing: 'snake_case' }),
    sql,
    listen: (channel, onPayload, onListening) => listener.listen(channel, onPayload, onListening),
    close,
  };
}

/**
 * True for errors that say the database cannot be reached or is going down or coming up, whatever was asked of it:
 * classes 08 (connection), 57P (shutdown, start-up, killed) and 53 (no resources) of PostgreSQL's error codes, 57014
 * (statement timeout), 25006 (it became a standby), the driver's own, and those of its sockets.
 */
export function isDatabaseDown(error: unknown): boolean {
  for (let e: unknown = error; e instanceof Error; e = e.cause) {
    const code = (e as { code?: unknown }).code;
    if (socketErrors.has(e)) return true;
    if (typeof code !== 'string') continue;
    if (/^CONNECTION_(CLOSED|ENDED|DESTROYED)$|^CONNECT_TIMEOUT$/.test(code)) return true;
    if (e.name === 'PostgresError' && /^(08|57P|53)|^57014$|^25006$/.test(code)) return true;
  }
  return false;
}

/** True where this transaction was ended, certainly without effect, because it and another waited for each other. */
export const isDeadlock = (error: unknown) => sqlState(error) === '40P01';

/** The SQLSTATE of a failed statement, through drizzle's wrapping. */
export function sqlState(error: unknown): string | undefined {
  for (let e: unknown = error; e instanceof Error; e = e.cause) {
    const code = (e as { code?: unknown }).code;
    if (typeof code === 'string') return code;
  }
  return undefined;
}
