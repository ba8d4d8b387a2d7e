import type { JobFilter, ListedJob, Windlass } from '../../clients/typescript/src/windlass.ts';
import { connect } from './connect.ts';
import { write } from './print-output.ts';
import { formatAge, formatTable } from './table.ts';

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
export async function listJobs({ watch, ...options }: JobsOptions): Promise<void> {
  const windlass = await connect();
  for (;;) {
    const jobs = await readJobs(windlass, options);
    if (options.json) {
      for (const job of jobs) await write(process.stdout, `${JSON.stringify(job)}\n`);
    } else {
      const width = process.stdout.isTTY ? process.stdout.columns : undefined;
      await write(process.stdout, `${watch ? CLEAR : ''}${tableOf(jobs, width)}`);
    }
    if (!watch) return;
    await new Promise(resolve => setTimeout(resolve, WATCH_MS));
  }
}

async function readJobs(
  windlass: Windlass,
  { limit, json: _json, ...given }: Omit<JobsOptions, 'watch'>,
): Promise<ListedJob[]> {
  // The service says which states and kinds there are.
  const filter = { ...given, limit: Math.min(limit, 100) } as JobFilter;
  const jobs: ListedJob[] = [];
  for await (const job of windlass.jobs(filter)) {
    jobs.push(job);
    if (jobs.length === limit) break;
  }
  return jobs;
}

function tableOf(jobs: ListedJob[], width: number | undefined): string {
  const rows = jobs.map(job => {
    const { id, state, kind, host, created } = job;
    const what = 'label' in job ? [job.name, job.label].filter(Boolean).join(': ') : '';
    const owner = 'owner' in job && job.owner ? [job.owner] : [];
    return [id, state, kind, host ?? '', formatAge(created), [...owner, what].join(' ')];
  });
  return formatTable(['ID', 'STATE', 'KIND', 'HOST', 'AGE', 'WHAT'], rows, width);
}
