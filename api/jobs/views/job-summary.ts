import { getTableColumns } from 'drizzle-orm';
import { type JobRow, jobs } from '../../../shared/database/schema.ts';

/** A job without its payload, which may have a MiB: for queries of many jobs, and for polls. */
export type JobSummary = Omit<JobRow, 'payload'>;

const { payload: _, ...rest } = getTableColumns(jobs);
export const summaryColumns = rest;
