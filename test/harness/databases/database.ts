import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { DATABASE_NAME, DATABASE_USER } from '../../../cli/embedded-postgres/cluster.ts';
import { prepareRoles, type RoleUrls } from '../../../cli/embedded-postgres/roles.ts';
import { readEnvironment } from '../../../servers/processes.ts';
import type { Stack } from '../stacks/stack.ts';

/** The stack's own database, to make time pass in it. Close it with end(). */
export const openStackDatabase = (stack: Stack): postgres.Sql =>
  postgres(stackDatabaseUrl(stack), { max: 1, onnotice: () => {} });

/** The URL with all rights: that of the superuser, where the database is the embedded one. */
export function stackDatabaseUrl({ environment, dataDir }: Stack): string {
  if (environment.DATABASE_URL) return environment.DATABASE_URL;
  const read = (name: string) => readFileSync(join(dataDir, name), 'utf8').trim();
  const password = read('postgres.password');
  return `postgres://${DATABASE_USER}:${password}@127.0.0.1:${read('postgres.port')}/${DATABASE_NAME}`;
}

/** The URLs of an embedded stack's programs, with the rights that they have. */
export const stackRoles = (stack: Stack): Promise<RoleUrls> =>
  prepareRoles(stackDatabaseUrl(stack));

/** The settings that the stack's programs run with, all secrets included; of the embedded database's URLs, the API's. */
export async function readSettings(stack: Stack): Promise<Record<string, string>> {
  const given = Object.entries(stack.environment).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
  const path = join(stack.dataDir, 'secrets.json');
  const made = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
  const settings: Record<string, string> = { ...made, ...Object.fromEntries(given) };
  if (settings.DATABASE_URL) return settings;
  return { ...settings, DATABASE_URL: (await stackRoles(stack)).api };
}

/** Every API process of the stack: a fleet has two, on ports in a row. */
export function apiUrls(stack: Stack): string[] {
  const apis = stack.pids().filter(({ name }) => name === 'windlass-api');
  return apis.map(({ pid }) => `http://127.0.0.1:${readEnvironment(pid).PORT}`);
}
