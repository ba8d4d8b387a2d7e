import postgres from 'postgres';
import { prepareDatabase } from '../../cli/service/migrate.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { type ComparisonResult, compare, type Side } from '../compare.ts';
import { measureJobs, startWorkers, stopWorkers } from './run-jobs.ts';
import { openWindlass } from './windlass.ts';

const WORKERS = 4;
const SLOTS = 8;
/** Of a command: it waits for its host, and takes no processor meanwhile. */
const COMMAND_MS = 250;
/**
 * Commands of each worker for six seconds at best: the last ones, beside which slots are free, count little on both
 * sides.
 */
const JOBS = (SLOTS * 6_000) / COMMAND_MS;

/** Compares four workers with one, of few slots, on commands that wait. Each has a database of its own. */
export async function compareScale(databaseUrl: string): Promise<ComparisonResult> {
  const sides = await Promise.all([openSide(databaseUrl, WORKERS), openSide(databaseUrl, 1)]);
  const [four, one] = sides;
  try {
    return await compare({
      name: 'four workers on commands that wait, against one',
      ours: four.measure,
      baseline: one.measure,
      unit: 'jobs/s',
      target: 3.6,
    });
  } finally {
    for (const side of sides) await side.close();
  }
}

async function openSide(
  server: string,
  workers: number,
): Promise<{ measure: Side; close(): Promise<void> }> {
  const url = new URL(server);
  url.pathname = `/scale_${workers}`;
  const admin = postgres(server, { max: 1 });
  await admin`create database ${admin(url.pathname.slice(1))}`;
  await admin.end();
  const servers = { databaseUrl: url.href, redisUrl: '' };
  await prepareDatabase(url.href, readConfig({ ADMIN_PASSWORD: 'of a bench' }));
  const work = { processes: workers, slots: SLOTS, commandMs: COMMAND_MS };
  const processes = await startWorkers('windlass', servers, work);
  const contender = await openWindlass({ databaseUrl: url.href });
  return {
    measure: () => measureJobs(contender, JOBS * workers),
    close: async () => {
      await stopWorkers(processes);
      await contender.close();
    },
  };
}
