import postgres from 'postgres';
import { readEnvironment } from '../../servers/processes.ts';
import type { Stack } from './stack.ts';

/** The stack's own database, to make time pass in it. Close it with end(). */
export const openStackDatabase = (stack: Stack): postgres.Sql =>
  postgres(stackDatabaseUrl(stack), { max: 1, onnotice: () => {} });

export function stackDatabaseUrl(stack: Stack): string {
  const api = stack.pids().find(({ name }) => name === 'windlass-api');
  const url = readEnvironment(api?.pid ?? 0).DATABASE_URL;
  if (!url) throw new Error('The stack has no API process, or its environment cannot be read.');
  return url;
}

/** Every API process of the stack: a fleet has two, on ports in a row. */
export function apiUrls(stack: Stack): string[] {
  const apis = stack.pids().filter(({ name }) => name === 'windlass-api');
  return apis.map(({ pid }) => `http://127.0.0.1:${readEnvironment(pid).PORT}`);
}
