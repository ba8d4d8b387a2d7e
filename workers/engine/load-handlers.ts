import { JOBS, type JobKind } from '../../shared/jobs/catalog.ts';
import type { Handler } from '../context.ts';

/** Sources end in .ts, the compiled program in .js. */
const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'));

/** Imports handlers/KIND for every kind of the catalog. */
export async function loadHandlers(): Promise<Map<JobKind, Handler<JobKind>>> {
  const kinds = Object.keys(JOBS) as JobKind[];
  const modules = await Promise.all(
    kinds.map(kind => import(new URL(`../handlers/${kind}${extension}`, import.meta.url).href)),
  );
  return new Map(kinds.map((kind, i) => [kind, modules[i].default]));
}
