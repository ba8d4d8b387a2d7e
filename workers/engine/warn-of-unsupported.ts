import {
  describeUnsupported,
  readUnsupported,
  type UnsupportedJobs,
} from '../../shared/jobs/payload-versions.ts';
import type { WorkerContext } from '../context.ts';

const EVERY_MS = 10_000;

/** Warns of jobs that wait for a newer release: once for each kind and version, until none is left. */
export function warnOfUnsupported({
  database: { db },
  log,
}: Pick<WorkerContext, 'database' | 'log'>): () => Promise<void> {
  let warned = new Set<string>();
  let next = 0;
  const keyOf = ({ kind, version }: UnsupportedJobs) => `${kind} ${version}`;
  return async () => {
    if (performance.now() < next) return;
    next = performance.now() + EVERY_MS;
    const waiting = await readUnsupported(db);
    for (const kind of waiting)
      if (!warned.has(keyOf(kind))) log.warn({ ...kind }, describeUnsupported(kind));
    warned = new Set(waiting.map(keyOf));
  };
}
