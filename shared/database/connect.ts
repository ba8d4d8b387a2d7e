import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import type postgres from 'postgres';
import { DirectConnection } from './direct-connection.ts';
import { openPool } from './pool.ts';
import { SESSION_SETTINGS } from './session-settings.ts';
import { CONNECT_TIMEOUT_MS, socketErrors } from './socket.ts';
import { describeTlsFailure } from './tls.ts';

export type Db = PostgresJsDatabase;
/** A transaction, or the database itself. To TypeScript both are one type: the two names tell the reader what is meant. */
export type Tx = Parameters<Parameters<Db['transaction']>[0]>[0] | Db;

export interface Database {
  db: Db;
  /** The postgres.js client. */
  sql: postgres.Sql;
  /** For what lasts as long as a connection. */
  direct: DirectConnection;
  /** Whether all connections but the direct one lead to a connection pooler. */
  isPooled: boolean;
  /** Rejects while it cannot be used, or takes no writes. Replaces connections that take none any more. */
  check(): Promise<void>;
  /** Rejects while a statement could not write. */
  assertReady(): Promise<void>;
  /** Whether its disk was too full for a statement within the last minute. */
  wasFull(): boolean;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  /** The server itself, if the URL is a connection pooler's. */
  directUrl?: string;
  /** Size of the pool. */
  max?: number;
  /** Connections that it uses except under load, and keeps. Default: all. */
  usual?: number;
  /** Milliseconds without a statement after which the server ends the direct connection; 0: never. */
  idleSessionMs?: number;
}

const READ_ONLY = `select current_setting('transaction_read_only')::bool as "isReadOnly"`;
type ReadOnlyRow = { isReadOnly: boolean };
const FULL_FOR_MS = 60_000;

export function openDatabase(
  url: string,
  { directUrl, max = 10, usual = max, idleSessionMs = 0 }: DatabaseOptions = {},
): Database {
  const isPooled = directUrl !== undefined;
  const options = {
    max,
    usual,
    // Below SILENCE_MS: an idle connection is closed before it looks dead.
    idle_timeout: 10,
    connect_timeout: CONNECT_TIMEOUT_MS / 1000,
    max_lifetime: null,
    // In seconds. By itself the driver waits up to 20 s after several refused connects.
    backoff: () => 0.25,
    connection: Object.assign(
      { application_name: process.title },
      isPooled ? {} : SESSION_SETTINGS,
    ),
    // PgBouncer gives each transaction another connection, and supports prepared statements only since 1.21.
    prepare: !isPooled,
    onnotice: () => {},
    // drizzle parses arrays itself. The driver's query for their types at each connect is an unhandled rejection when the
    // database becomes unreachable just then (porsager/postgres#1223), which would end the process.
    fetch_types: false,
  };
  let hasFailed = false;
  let hasRefusedWrites = false;
  let fullAt = Number.NEGATIVE_INFINITY;
  const onFailed = (error: unknown) => {
    hasFailed ||= isDatabaseDown(error);
    hasRefusedWrites ||= sqlState(error) === '25006';
    if (isDatabaseFull(error)) fullAt = performance.now();
  };
  const { sql, renew } = openPool(url, { ...options, onFailed });
  const direct = new DirectConnection(directUrl ?? url, { idleSessionMs });
  const assertReady = async () => assertWritable(await sql.unsafe<ReadOnlyRow[]>(READ_ONLY));
  const check = async () => {
    // It is asked every 5 s anyway; a statement of the pool would keep another connection open.
    const [row] = await direct.query<ReadOnlyRow>(READ_ONLY);
    if (row?.isReadOnly) {
      // A session keeps the default that its role or database had when it began.
      assertWritable(await direct.queryAnew<ReadOnlyRow>(READ_ONLY));
      direct.renew();
      hasRefusedWrites = true;
    }
    if (hasRefusedWrites) renew();
    hasRefusedWrites = false;
    // An open connection outlives a change of the password, which refuses new ones.
    if (!hasFailed) return;
    hasFailed = false;
    await assertReady();
  };
  // Without a timeout end() can wait for ever after a failed query (porsager/postgres#1130).
  const close = async () => {
    await Promise.all([sql.end({ timeout: 2 }), direct.close()]);
  };
  return {
    db: drizzle(sql, { casing: 'snake_case' }),
    sql,
    direct,
    isPooled,
    check,
    assertReady,
    wasFull: () => performance.now() - fullAt < FULL_FOR_MS,
    close,
  };
}

/** Throws what a statement that writes would fail with. */
function assertWritable([row]: ReadOnlyRow[]): void {
  if (row?.isReadOnly)
    throw Object.assign(new Error('the database accepts no writes'), {
      code: '25006',
      severity: 'ERROR',
    });
}

/** What node-postgres says of a lost connection, without a code. */
const LOST_CONNECTION =
  /^(Connection terminated|Client has encountered a connection error|timeout expired$)/;

/**
 * Whether the database cannot be reached, is starting or is shutting down: PostgreSQL's classes 08 (connection), 28 (it
 * refuses the login), 57P (operator intervention) and 53 (no resources), 3D000 (there is no such database), 57014 (statement
 * timeout), 25006 (it became a standby, or read-only), and errors of the drivers and their sockets.
 */
export function isDatabaseDown(error: unknown): boolean {
  for (let e: unknown = error; e instanceof Error; e = e.cause) {
    const code = (e as { code?: unknown }).code;
    if (socketErrors.has(e) || LOST_CONNECTION.test(e.message)) return true;
    if (typeof code !== 'string') continue;
    if (/^CONNECTION_(CLOSED|ENDED|DESTROYED)$|^CONNECT_TIMEOUT$/.test(code)) return true;
    const isAnswer = e.name === 'PostgresError' || 'severity' in e;
    if (isAnswer && /^(08|28|57P|53)|^3D000$|^57014$|^25006$/.test(code)) return true;
  }
  return false;
}

/** What an operator has to mend before a database that isDatabaseDown() can be used again, in words that end a sentence. */
export const describeOutage = (error: unknown): string =>
  reasonOfOutage(error) ?? 'the database cannot be reached';

/** Like describeOutage(); undefined where it is only known that the database cannot be reached. */
export function reasonOfOutage(error: unknown): string | undefined {
  switch (sqlState(error)) {
    case '53100':
      return 'the disk of the database is full';
    case '53200':
      return 'the database has no memory left';
    case '53300':
      return 'the database has no connection left (max_connections)';
    case '25006':
      return 'the database accepts no writes';
    case '28000':
    case '28P01':
      return 'the database refuses the login of DATABASE_URL';
    case '3D000':
      return 'the server has no database of the name in DATABASE_URL';
    default:
      return describeTlsFailure(error)?.problem;
  }
}

export const isDatabaseFull = (error: unknown) => sqlState(error) === '53100';

/** Whether the transaction was rolled back because of a deadlock. */
export const isDeadlock = (error: unknown) => sqlState(error) === '40P01';

/** The SQLSTATE of a failed statement, through drizzle's wrapping. */
export function sqlState(error: unknown): string | undefined {
  for (let e: unknown = error; e instanceof Error; e = e.cause) {
    const code = (e as { code?: unknown }).code;
    if (typeof code === 'string') return code;
  }
  return undefined;
}
