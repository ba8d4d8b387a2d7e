import type { Job } from '../../../clients/typescript/src/jobs.ts';
import type { JobFilter, ListedJob } from '../../../clients/typescript/src/list-jobs.ts';
import type { Windlass } from '../../../clients/typescript/src/windlass.ts';
import { type Columns, printRecords } from '../../output/print-records.ts';
import { formatAge } from '../../output/table.ts';
import { write } from '../../output/write.ts';
import { connect } from '../connect.ts';

export interface JobsOptions {
  state?: string[];
  kind?: string[];
  host?: string;
  name?: string;
  owner?: string;
  limit: number;
  watch?: boolean;
  json?: boolean;
}

const WATCH_MS = 2_000;
const CLEAR = '\x1b[H\x1b[2J\x1b[3J';

/** `windlass jobs`: the latest jobs. */
export async function listJobs({ watch, json, ...options }: JobsOptions): Promise<void> {
  const windlass = await connect();
  for (;;) {
    const jobs = await readJobs(windlass, options);
    if (watch && !json) await write(process.stdout, CLEAR);
    await printRecords(jobs, { columns: options.owner === undefined ? COLUMNS : WITH_OWNER, json });
    if (!watch) return;
    await new Promise(resolve => setTimeout(resolve, WATCH_MS));
  }
}

async function readJobs(
  windlass: Windlass,
  given: Omit<JobsOptions, 'watch' | 'json'>,
): Promise<ListedJob[]> {
  // The service checks which kinds exist.
  const filter = given as JobFilter;
  const jobs: ListedJob[] = [];
  for await (const job of windlass.jobs(filter)) jobs.push(job);
  return jobs;
}

/** What a batch job that has not begun waits for; empty for others. */
const describeWait = ({ state, batch, message }: Job) =>
  state === 'queued' && batch && message ? ` (${message})` : '';

const COLUMNS: Columns<ListedJob> = {
  ID: ({ id }) => id,
  STATE: ({ state }) => state,
  KIND: ({ kind }) => kind,
  HOST: ({ host }) => host ?? '',
  AGE: ({ created }) => formatAge(created),
  WHAT: job =>
    'label' in job ? [job.name, job.label].filter(Boolean).join(': ') + describeWait(job) : '',
};
const WITH_OWNER: Columns<ListedJob> = { OWNER: ({ owner }) => owner ?? '', ...COLUMNS };
