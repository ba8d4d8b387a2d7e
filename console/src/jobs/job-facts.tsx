import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';
import { exitStatus, isOwn, type ListedJob } from '../service/jobs.ts';

/** What else is known of a job, with links to what belongs to it. */
export function JobFacts({ job }: { job: ListedJob }) {
  const own = isOwn(job) ? job : undefined;
  const code = exitStatus(job);
  return (
    <dl class="facts">
      <Fact name="Kind">{job.kind}</Fact>
      {job.host && <Fact name="Host">{job.host}</Fact>}
      <Fact name="Owner">{job.owner}</Fact>
      {code !== undefined && <Fact name="Exit status">{code}</Fact>}
      {own?.batch && (
        <Fact name={own.batch.engine}>
          {[own.batch.id, own.batch.state, own.batch.reason].filter(Boolean).join(', ')}
        </Fact>
      )}
      {own?.retryOf && (
        <Fact name="Again">
          <Link href={`/jobs/${own.retryOf}`}>the job before</Link>
        </Fact>
      )}
      <Fact name="Id">
        <code>{job.id}</code>
      </Fact>
    </dl>
  );
}

const Fact = ({ name, children }: { name: string; children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);
