/// <reference types="vite/types/importMeta.d.ts" />
import { JOBS, type JobKind } from '../../shared/jobs/catalog.ts';
import type { Handler } from '../context.ts';

/** The default exports of all files in workers/handlers. The bundler and vitest list them. */
const files = import.meta.glob<Handler<JobKind>>(['../handlers/*.ts', '!../handlers/*.test.ts'], {
  eager: true,
  import: 'default',
});

/** The handler of every kind of the catalog, from the file of its name. */
export const HANDLERS: Map<JobKind, Handler<JobKind>> = new Map(
  (Object.keys(JOBS) as JobKind[]).map(kind => [kind, findHandler(kind)]),
);

function findHandler(kind: JobKind): Handler<JobKind> {
  const handler = files[`../handlers/${kind}.ts`];
  if (!handler) throw new Error(`workers/handlers/${kind}.ts is missing`);
  return handler;
}
