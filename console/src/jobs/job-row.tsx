import { Link } from 'wouter-preact';
import { isEnded, isOwn, type ListedJob } from '../service/jobs.ts';
import { StateBadge } from '../ui/state-badge.tsx';
import { Ago, Duration } from '../ui/time.tsx';

/** A job in a list. What is going wrong stands below its name. */
export function JobRow({ job, showOwner }: { job: ListedJob; showOwner: boolean }) {
  const own = isOwn(job) ? job : undefined;
  const title = own?.name ?? own?.label ?? `${job.kind} of ${job.owner}`;
  return (
    <tr>
      <td>
        <StateBadge job={job} />
      </td>
      <td class="job-cell">
        <Link
          class={`job-link ellipsis${own?.name ? '' : ' mono'}`}
          href={`/jobs/${job.id}`}
          title={title}
        >
          {title}
        </Link>
        {own?.name && own.label && <span class="job-label mono ellipsis muted">{own.label}</span>}
        <Trouble job={job} />
        {own?.state === 'running' && own.progress !== null && (
          <progress aria-label={`Progress of ${title}`} max={1} value={own.progress} />
        )}
      </td>
      <td class="muted">{job.kind}</td>
      <td class="muted ellipsis" title={job.host ?? undefined}>
        {job.host ?? '–'}
      </td>
      {showOwner && (
        <td class="muted ellipsis" title={job.owner}>
          {job.owner}
        </td>
      )}
      <td class="muted">
        <Ago at={job.created} />
      </td>
      <td class="numbers">
        {job.started ? <Duration from={job.started} to={job.finished} /> : '–'}
      </td>
    </tr>
  );
}

function Trouble({ job }: { job: ListedJob }) {
  const { error } = job;
  if (error) {
    const said = 'detail' in error ? String(error.detail) : error.code;
    return <span class="job-trouble">{said}</span>;
  }
  if (isOwn(job) && !isEnded(job) && job.message)
    return <span class="job-message">{job.message}</span>;
  return null;
}
