import { Link } from 'wouter-preact';
import { JobActions } from '../jobs/job-actions.tsx';
import { ChangeAndRun, JobCommand } from '../jobs/job-command.tsx';
import { JobEnd } from '../jobs/job-end.tsx';
import { JobFacts } from '../jobs/job-facts.tsx';
import { JobResult } from '../jobs/job-result.tsx';
import { JobTimeline } from '../jobs/job-timeline.tsx';
import { NextStep } from '../jobs/next-step.tsx';
import { RemoveJob } from '../jobs/remove-job.tsx';
import { LogPanel } from '../log/log-panel.tsx';
import { isEnded, isOwn, useJob } from '../service/jobs.ts';
import type { CurrentUser } from '../service/user.ts';
import { lazy } from '../ui/lazy.tsx';
import { Problem } from '../ui/problem.tsx';
import { StateBadge } from '../ui/state-badge.tsx';
import { useTitle } from '../ui/use-title.ts';
import { Wait } from '../ui/wait.tsx';
import { readBadFrames, readVideo } from '../video/result.ts';

/** Kinds that print what users read; of others the result is shown. */
const PRINTS = ['command', 'batch'];

const VideoPanel = lazy(async () => (await import('../video/video-panel.tsx')).VideoPanel);
const FrameList = lazy(async () => (await import('../video/frame-list.tsx')).FrameList);

/** All there is to know of one job. */
export function JobPage({ id, user }: { id: string; user: CurrentUser }) {
  const { data: job, error } = useJob(id);
  const own = job && isOwn(job) ? job : undefined;
  const video = own && readVideo(own);
  const bad = own && readBadFrames(own);
  const title = own?.name ?? own?.label ?? job?.kind ?? 'Job';
  useTitle(title);
  if (!job)
    return (
      <>
        <h1>Job</h1>
        {error ? (
          <Problem error={error}>
            <Link href="/jobs">All jobs</Link>
          </Problem>
        ) : (
          <Wait>Asking for the job …</Wait>
        )}
      </>
    );
  return (
    <>
      <nav class="crumbs" aria-label="Where you are">
        <Link href="/jobs">Jobs</Link>
        <span aria-hidden="true">/</span>
        <span class="ellipsis">{id}</span>
      </nav>
      <div class="page-head">
        <div class="job-title">
          <span role="status">
            <StateBadge job={job} />
          </span>
          <h1 class={own?.name ? 'ellipsis' : 'ellipsis mono'} title={title}>
            {title}
          </h1>
        </div>
        <div class="row">
          <JobActions job={job} />
          {own && PRINTS.includes(own.kind) && <ChangeAndRun job={own} />}
          {isEnded(job) && <RemoveJob job={job} />}
        </div>
      </div>
      {own?.name && own.label && <p class="mono muted ellipsis">{own.label}</p>}
      <JobEnd job={job} />
      {bad && (
        <section class="card" aria-label="Bad frames">
          <div class="card-head">
            <h2>Frames that cannot be used</h2>
          </div>
          <div class="card-body">
            <FrameList {...bad} />
          </div>
        </section>
      )}
      <NextStep job={job} user={user} />
      {own?.state === 'running' && own.progress !== null && (
        <div class="job-progress row">
          <progress aria-label="Progress" max={1} value={own.progress} />
          <span>{Math.floor(own.progress * 100)} %</span>
        </div>
      )}
      <div class="job-top">
        <JobTimeline job={job} />
        <section class="card" aria-label="Facts">
          <JobFacts job={job} />
        </section>
      </div>
      {own && PRINTS.includes(own.kind) && <JobCommand job={own} />}
      {own && video && <VideoPanel job={own} result={video} />}
      {own && !video && !PRINTS.includes(own.kind) && <JobResult job={own} />}
      {own && PRINTS.includes(own.kind) && <LogPanel job={id} />}
    </>
  );
}
