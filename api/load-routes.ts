import { readdir } from 'node:fs/promises';
import type { RouteFile } from './http/routes.ts';

/** The default exports of all files in api/routes. */
export async function loadRoutes(): Promise<RouteFile[]> {
  const folder = new URL('./routes/', import.meta.url);
  // Sources end in .ts, the compiled program in .js, beside which are source maps.
  const names = (await readdir(folder)).filter(name => /(?<!\.test|\.d)\.[tj]s$/.test(name));
  const modules = await Promise.all(names.map(name => import(new URL(name, folder).href)));
  return modules.map(({ default: file }) => file);
}
