import { exitStatus, type ListedJob } from '../service/jobs.ts';

/** What became of a job: why it failed and what can be done, or that its command itself reports a failure. */
export function JobEnd({ job }: { job: ListedJob }) {
  const { error } = job;
  if (error)
    return (
      <div class="notice" data-look={job.state === 'failed' ? 'error' : undefined}>
        <strong>{'detail' in error ? String(error.detail) : `It failed: ${error.code}.`}</strong>
        {'hint' in error && error.hint !== undefined && <p>{String(error.hint)}</p>}
        <small>
          Code <code>{error.code}</code>
        </small>
      </div>
    );
  const code = exitStatus(job);
  if (!code) return null;
  return (
    <div class="notice" data-look="error">
      <strong>The command ended with exit status {code}.</strong>
      {code > 128 && <p>As after signal {code - 128}.</p>}
    </div>
  );
}
