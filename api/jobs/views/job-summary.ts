import { getTableColumns } from 'drizzle-orm';
import { type JobRow, jobs } from '../../../shared/database/schema.ts';

/** All of a job but its payload, which may have a MiB: for whoever reads many at once, or again and again. */
export type JobSummary = Omit<JobRow, 'payload'>;

const { payload: _, ...rest } = getTableColumns(jobs);
export const summaryColumns = rest;
