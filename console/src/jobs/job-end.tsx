import { exitStatus, type ListedJob } from '../service/jobs.ts';
import { adviceOf } from '../ui/advice.ts';

/** What became of a job: why it failed and what can be done, or that its command itself reports a failure. */
export function JobEnd({ job }: { job: ListedJob }) {
  const { error } = job;
  if (error) {
    const hint = 'hint' in error ? String(error.hint ?? '') : '';
    const advice = adviceOf({ code: error.code, hint });
    return (
      <div class="notice" data-look={job.state === 'failed' ? 'error' : undefined}>
        <strong>{'detail' in error ? String(error.detail) : `It failed: ${error.code}.`}</strong>
        {advice && <p>{advice}</p>}
        <small>
          Code <code>{error.code}</code>
        </small>
      </div>
    );
  }
  const code = exitStatus(job);
  if (!code) return null;
  return (
    <div class="notice" data-look="error">
      <strong>The command ended with exit status {code}.</strong>
      {code > 128 && <p>As after signal {code - 128}.</p>}
    </div>
  );
}
