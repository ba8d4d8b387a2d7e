import { and, inArray, isNull, sql } from 'drizzle-orm';
import { jobs, segments } from '../../shared/database/schema.ts';
import type { WorkerContext } from '../context.ts';

/** Younger objects may belong to an attempt that is about to promote them. */
const YOUNG_MS = 3_600_000;
/** An unfinished write that nobody has touched for so long has no writer any more. */
const ABANDONED_MS = 24 * 3_600_000;
/** How long a job's result in bytes can be fetched after its end. */
const RESULT_KEPT = sql`interval '24 hours'`;
const BATCH = 500;

/** Removes what nothing refers to: videos whose time is up, and whatever attempts stored that came to nothing. */
export async function removeOldObjects(context: WorkerContext): Promise<void> {
  await removeUnreferenced(context, 'videos/', findKeptVideos);
  await removeUnreferenced(context, 'output/', findKeptOutput);
  await context.objects.removeAbandoned(new Date(Date.now() - ABANDONED_MS));
}

type FindKept = (context: WorkerContext, keys: string[]) => Promise<Set<string>>;

async function removeUnreferenced(
  context: WorkerContext,
  prefix: string,
  findKept: FindKept,
): Promise<void> {
  let batch: string[] = [];
  const removeBatch = async () => {
    const kept = await findKept(context, batch);
    for (const key of batch) if (!kept.has(key)) await context.objects.remove(key);
    batch = [];
  };
  for await (const { key, modified } of context.objects.list(prefix)) {
    if (Date.now() - modified.getTime() < YOUNG_MS) continue;
    if (batch.push(key) === BATCH) await removeBatch();
  }
  if (batch.length > 0) await removeBatch();
}

/** `videos/JOB/…`: kept while the job is open, and for a day where it is the job's result. */
async function findKeptVideos(
  { database: { db } }: WorkerContext,
  keys: string[],
): Promise<Set<string>> {
  const jobOf = (key: string) => key.split('/')[1] ?? '';
  const ids = keys.map(jobOf);
  const fresh = and(inArray(jobs.id, ids), sql`${jobs.finished} > now() - ${RESULT_KEPT}`);
  const results = await db
    .select({ object: sql<string>`${jobs.result}->>'object'` })
    .from(jobs)
    .where(fresh);
  const open = await db
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(inArray(jobs.id, ids), isNull(jobs.finished)));
  const openIds = new Set(open.map(row => row.id));
  return new Set([
    ...results.map(row => row.object),
    ...keys.filter(key => openIds.has(jobOf(key))),
  ]);
}

/** `output/JOB/…`: kept where a segment refers to it. */
async function findKeptOutput(
  { database: { db } }: WorkerContext,
  keys: string[],
): Promise<Set<string>> {
  const rows = await db
    .select({ object: segments.object })
    .from(segments)
    .where(inArray(segments.object, keys));
  return new Set(rows.map(row => row.object));
}
