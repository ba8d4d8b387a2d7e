import { eq, sql } from 'drizzle-orm';
import type { Tx } from '../../../shared/database/connect.ts';
import { prepareOnce } from '../../../shared/database/prepare-once.ts';
import { jobs } from '../../../shared/database/schema.ts';
import { isId } from '../../../shared/ids.ts';
import { type JobSummary, summaryColumns } from './job-summary.ts';

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
