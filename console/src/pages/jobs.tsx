import { useCallback, useMemo } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { readFilter, toQuery } from '../jobs/job-filter.ts';
import { JobFilters } from '../jobs/job-filters.tsx';
import { JobTable } from '../jobs/job-table.tsx';
import { serviceNow } from '../service/clock.ts';
import { useJobs } from '../service/jobs.ts';
import type { CurrentUser } from '../service/user.ts';
import { Empty } from '../ui/empty.tsx';
import { More } from '../ui/more.tsx';
import { Problem } from '../ui/problem.tsx';
import { useAddress } from '../ui/use-address.ts';
import { useTitle } from '../ui/use-title.ts';
import { Wait } from '../ui/wait.tsx';

/** Jobs as they go, the latest first. */
export function JobsPage({ user }: { user: CurrentUser }) {
  useTitle('Jobs');
  const me = user.username;
  const [search, change] = useAddress();
  const filter = useMemo(() => readFilter(search), [search]);
  const onChange = useCallback((changes: Partial<typeof filter>) => change(changes), [change]);
  // A period begins where the page was opened, or chosen: it is asked for again and again.
  const query = useMemo(() => toQuery(filter, { me, now: serviceNow() }), [filter, me]);
  const list = useJobs(query);
  const { data, error, hasNextPage, isPlaceholderData } = list;
  const jobs = data?.pages.flatMap(page => page.items) ?? [];
  return (
    <>
      <div class="page-head">
        <h1>Jobs</h1>
        <Link class="button" data-look="primary" href="/run">
          Run a command
        </Link>
      </div>
      <JobFilters filter={filter} user={user} onChange={onChange} />
      {error && <Problem error={error} />}
      {(!data || isPlaceholderData) && !error && <Wait>Asking for jobs …</Wait>}
      {data && (
        <div class="card" aria-busy={isPlaceholderData}>
          {jobs.length > 0 && (
            <JobTable jobs={jobs} label="Jobs" showOwner={filter.owner !== undefined} />
          )}
          {jobs.length === 0 && !hasNextPage && <NoJobs isFiltered={search.size > 0} />}
          <More list={list}>Older jobs</More>
        </div>
      )}
    </>
  );
}

const NoJobs = ({ isFiltered }: { isFiltered: boolean }) =>
  isFiltered ? (
    <Empty title="No job matches">
      <p>
        Change the filters, or look at <Link href="/jobs">all jobs</Link>.
      </p>
    </Empty>
  ) : (
    <Empty title="No jobs yet">
      <p>
        Whatever takes longer than a request is a job: a command, a video, an upload that is parsed.{' '}
        <Link href="/run">Run a first command</Link>, and it stands here.
      </p>
    </Empty>
  );
