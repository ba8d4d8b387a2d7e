import { and, eq, sql } from 'drizzle-orm';
import type { Db } from '../database/connect.ts';
import { jobs } from '../database/schema.ts';
import { isOpenById } from './job-conditions.ts';

/** How often a request that streams output writes a heartbeat, because its process may be killed. */
export const READER_SIGN_MS = 3_000;
/** A worker that has seen no sign for so long cancels the job. */
export const READER_LOST_MS = 15_000;

/** Shows that somebody waits for the output of this job. */
export async function showReader(db: Db, job: string): Promise<void> {
  await db
    .update(jobs)
    .set({ readerSeen: sql`now()` })
    .where(and(eq(jobs.id, job), isOpenById));
}
