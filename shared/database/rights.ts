import { getTableName } from 'drizzle-orm';
import { toSnakeCase } from 'drizzle-orm/casing';
import type { PgTable } from 'drizzle-orm/pg-core';
import type pg from 'pg';
import { SESSION_COLUMNS, USER_COLUMNS, WEBHOOK_COLUMNS } from './api-columns.ts';
import * as schema from './schema.ts';

/** The roles of running programs, where the database has them. The tables' owner migrates, and nothing else. */
export const API_ROLE = 'windlass_api';
/** A member of the API's role: workers may do what the API may, and what is said below. */
export const WORKER_ROLE = 'windlass_worker';

type Schema = typeof schema;
type TableKey = {
  [K in keyof Schema]: Schema[K] extends PgTable ? K : never;
}[keyof Schema];

const columnsOf = (columns: object) => Object.keys(columns).map(toSnakeCase).join(', ');
const ALL = 'select, insert, update, delete';

/**
 * What the API's role may do with each table. Programs of the previous release run with the same role while they are replaced:
 * take a right away one release after the last use of it.
 */
const API_RIGHTS: Record<TableKey, string> = {
  users: `select (${columnsOf(USER_COLUMNS)}), insert, update, delete`,
  spentOidcStates: ALL,
  logins: ALL,
  tokens: ALL,
  failedLogins: ALL,
  auditPending: 'select, insert',
  auditEntries: 'select',
  auditChain: 'select',
  jobs: ALL,
  // A trigger writes it.
  jobHistory: 'select',
  videoFrames: 'select',
  videoSegments: 'select',
  leftoverRuns: ALL,
  // Output is written by workers; a record is removed with it.
  chunks: 'select, delete',
  segments: 'select, delete',
  idempotencyKeys: ALL,
  leases: 'select',
  workers: 'select, update (draining)',
  projects: ALL,
  projectBytes: ALL,
  members: ALL,
  models: ALL,
  artifacts: ALL,
  cacheEntries: ALL,
  bookmarks: ALL,
  hosts: ALL,
  batchPolls: 'select',
  sessions: `select (${columnsOf(SESSION_COLUMNS)}), insert, update (accessed, ended, end_reason, sealed, answers)`,
  uploads: ALL,
  parts: ALL,
  views: ALL,
  pendingDeletions: ALL,
  installation: 'select, update (store_marked)',
  // Triggers and workers count.
  userStorage: 'select',
  storageChanges: 'select',
  // Workers count.
  jobStatistics: 'select',
  jobStatisticsProgress: 'select',
  // Removing the record of a job leaves here what is to be counted of it.
  uncountedJobs: 'select, insert',
  webhooks: `select (${columnsOf(WEBHOOK_COLUMNS)}), insert, delete`,
  // Removing the record of a job copies it here for pending deliveries.
  webhookDeliveries: 'select, update (record)',
};

/** Where the worker's role has other rights than ALL. Nobody may change an entry of the audit. */
const WORKER_RIGHTS: Partial<Record<TableKey, string>> = {
  users: 'select (username, disabled)',
  installation: 'select, update (store_marked)',
  jobHistory: 'select',
  auditPending: 'select, insert, delete',
  auditEntries: 'select, insert, delete',
  auditChain: 'select, update',
};

/**
 * Gives the roles of running programs their rights, in one transaction, so that they are never without. A database without
 * these roles is left as it is: there the programs run as the tables' owner.
 */
export async function grantRights(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ role: string }>(
    'select rolname as role from pg_roles where rolname = any($1)',
    [[API_ROLE, WORKER_ROLE]],
  );
  const roles = new Set(rows.map(({ role }) => role));
  const statements = [
    ...(roles.has(API_ROLE) ? grantsOf(API_ROLE, API_RIGHTS) : []),
    ...(roles.has(WORKER_ROLE) ? grantsOf(WORKER_ROLE, WORKER_RIGHTS) : []),
    'revoke execute on function password_hash_of(text) from public',
    ...(roles.has(API_ROLE)
      ? [`grant execute on function password_hash_of(text) to ${API_ROLE}`]
      : []),
  ];
  // Several statements in one message are one transaction.
  if (roles.size > 0) await client.query(statements.join(';'));
}

function grantsOf(role: string, rights: Partial<Record<TableKey, string>>): string[] {
  const tables = Object.entries(schema).flatMap(([key, table]) =>
    key in API_RIGHTS ? [[key as TableKey, getTableName(table as PgTable)] as const] : [],
  );
  return [
    `revoke all on all tables in schema public from ${role}`,
    ...tables.map(
      ([key, name]) => `grant ${rights[key] ?? ALL} on table public.${name} to ${role}`,
    ),
    `grant usage on all sequences in schema public to ${role}`,
    `grant usage on schema public, drizzle, bullmq to ${role}`,
    `grant select on all tables in schema drizzle to ${role}`,
    `grant ${ALL} on all tables in schema bullmq to ${role}`,
    `grant usage, select on all sequences in schema bullmq to ${role}`,
  ];
}
