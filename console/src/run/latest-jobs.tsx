import { Link } from 'wouter-preact';
import { JobTable } from '../jobs/job-table.tsx';
import type { SessionRecord } from '../service/hosts.ts';
import { useJobs } from '../service/jobs.ts';
import { Problem } from '../ui/problem.tsx';

const SHOWN = 8;

/** What was run last on the host of a login, while nothing is looked at. The host is its key: each begins without jobs. */
export function LatestJobs({ session: { hostname } }: { session: SessionRecord }) {
  const { data, error } = useJobs({ host: hostname, kind: ['command', 'batch', 'video'] });
  const jobs = data?.pages[0]?.items.slice(0, SHOWN) ?? [];
  if (error) return <Problem error={error} />;
  if (jobs.length === 0) return null;
  return (
    <section class="card" aria-label={`Latest on ${hostname}`}>
      <div class="card-head">
        <h2>Latest on {hostname}</h2>
        <Link href={`/jobs?host=${encodeURIComponent(hostname)}`}>All its jobs</Link>
      </div>
      <JobTable jobs={jobs} label={`Jobs on ${hostname}`} />
    </section>
  );
}
