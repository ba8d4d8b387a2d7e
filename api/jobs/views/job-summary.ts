export { type JobSummary, summaryColumns } from '../../../shared/jobs/job-record.ts';
