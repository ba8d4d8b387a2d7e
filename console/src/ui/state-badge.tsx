import { exitStatus, type JobState, type ListedJob } from '../service/jobs.ts';

const WORDS: Record<JobState, string> = {
  queued: 'Waiting',
  running: 'Running',
  succeeded: 'Succeeded',
  failed: 'Failed',
  cancelled: 'Cancelled',
};

/** A command that came to its own end and reports a failure is a success of the service's alone. */
export function StateBadge({ job }: { job: ListedJob }) {
  const code = exitStatus(job);
  return (
    <span class="badge" data-state={code ? 'failed' : job.state}>
      {code ? `Exit status ${code}` : WORDS[job.state]}
    </span>
  );
}
