import { eq, sql } from 'drizzle-orm';
import type { Tx } from '../../../shared/database/connect.ts';
import { prepareOnce } from '../../../shared/database/prepare-once.ts';
import { jobs } from '../../../shared/database/schema.ts';
import { notFound } from '../../../shared/errors/errors.ts';
import { isId } from '../../../shared/ids.ts';
import { type JobSummary, summaryColumns } from '../../../shared/jobs/job-record.ts';
import type { User } from '../../identity/user.ts';

/** The job with this id, of any owner. */
export async function findJob(db: Tx, id: string): Promise<JobSummary | undefined> {
  const [row] = isId(id) ? await selectJob(db).execute({ id }) : [];
  return row;
}

const selectJob = prepareOnce(db =>
  db
    .select(summaryColumns)
    .from(jobs)
    .where(eq(jobs.id, sql.placeholder('id')))
    .prepare('find_job'),
);

/** The user's job with this id. Throws `not_found`. */
export async function findOwnJob(db: Tx, id: string, user: User): Promise<JobSummary> {
  const row = await findJob(db, id);
  if (row?.owner !== user.username) throw unknownJob();
  return row;
}

/** Finds what findOwnJob() does, and others' jobs for server administrators, who may see that they exist, and end them. */
export async function findJobForOperation(db: Tx, id: string, user: User): Promise<JobSummary> {
  const row = user.administrator ? await findJob(db, id) : undefined;
  return row ?? findOwnJob(db, id, user);
}

export const unknownJob = () => notFound('there is no such job.', 'GET /api/jobs lists yours.');
