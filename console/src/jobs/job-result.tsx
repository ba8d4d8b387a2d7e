import { isEnded, type Job } from '../service/jobs.ts';

/** What a job came to whose kind prints nothing: the members of its result. */
export function JobResult({ job }: { job: Job }) {
  const { result, state } = job;
  if (!isEnded(job) || state !== 'succeeded') return null;
  const members = Object.entries(result ?? {});
  return (
    <section class="card" aria-label="Result">
      <div class="card-head">
        <h2>Result</h2>
      </div>
      {members.length === 0 ? (
        <p class="card-body muted">It is done, and there is nothing more to tell.</p>
      ) : (
        <dl class="facts">
          {members.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd class="mono">
                {typeof value === 'object' ? JSON.stringify(value) : String(value)}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}
