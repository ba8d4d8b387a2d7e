import { Link } from 'wouter-preact';
import { JobActions } from '../jobs/job-actions.tsx';
import { JobEnd } from '../jobs/job-end.tsx';
import { NextStep } from '../jobs/next-step.tsx';
import { LogPanel } from '../log/log-panel.tsx';
import { isOwn, useJob } from '../service/jobs.ts';
import type { CurrentUser } from '../service/user.ts';
import { Problem } from '../ui/problem.tsx';
import { StateBadge } from '../ui/state-badge.tsx';
import { Duration } from '../ui/time.tsx';

interface RunOutputProps {
  job: string;
  user: CurrentUser;
  /** The page says what its host needs. */
  isTold: boolean;
}

/** The command that was started here last: how it is, and what it prints. */
export function RunOutput({ job: id, user, isTold }: RunOutputProps) {
  const { data: job, error } = useJob(id);
  return (
    <>
      {error && !job && <Problem error={error} />}
      {job && (
        <div class="run-head">
          <span role="status">
            <StateBadge job={job} />
          </span>
          <Link class="run-label mono ellipsis" href={`/jobs/${id}`}>
            {isOwn(job) ? (job.name ?? job.label) : job.kind}
          </Link>
          {job.started && (
            <span class="muted">
              <Duration from={job.started} to={job.finished} />
            </span>
          )}
          <JobActions job={job} />
        </div>
      )}
      {job && <JobEnd job={job} />}
      {job && !isTold && <NextStep job={job} user={user} />}
      <LogPanel job={id} />
    </>
  );
}
