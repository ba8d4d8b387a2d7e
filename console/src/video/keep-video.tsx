import type { TargetedSubmitEvent } from 'preact';
import { useSessions } from '../service/hosts.ts';
import type { Job } from '../service/jobs.ts';
import { itemsOf } from '../service/pages.ts';
import { canWrite, useProjectName, useProjects } from '../service/projects-of-jobs.ts';
import { useCacheVideo } from '../service/videos.ts';
import { Button } from '../ui/button.tsx';
import { Problem } from '../ui/problem.tsx';
import { CacheFields, readCacheFields } from './cache-fields.tsx';
import { useReplaceQuestion } from './replace-question.tsx';
import { readVideo } from './result.ts';

/** Keeps a video for the people of a project: without it the bytes go with the job. */
export function KeepVideo({ job }: { job: Job }) {
  const keep = useCacheVideo(job.session ?? '', job.id);
  const list = useProjects();
  const projects = itemsOf(list.data)?.filter(canWrite);
  const keptIn = useProjectName(keep.data?.project ?? job.project ?? undefined);
  const replacing = useReplaceQuestion();
  const { data: sessions } = useSessions();
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const location = readCacheFields(new FormData(event.currentTarget));
    replacing.ask(location, () => location && keep.mutate(location));
  };
  const kept = job.project !== null && !readVideo(job)?.uncached && (
    <p>It is in the cache of {keptIn ?? job.project}.</p>
  );
  if (!sessions || !projects) return null;
  const hasEnded = !sessions.some(({ sid }) => sid === job.session);
  if (hasEnded || (projects.length === 0 && !list.hasNextPage))
    return (
      <div class="card-body muted">
        {kept}
        <p>
          {hasEnded
            ? 'The login with which it was made has ended: it can be downloaded, and no longer be kept in a cache.'
            : 'There is no project that you write, in whose cache it could be kept.'}
        </p>
      </div>
    );
  return (
    <form class="card-body" onSubmit={send}>
      {kept}
      <CacheFields suggestion={suggestKey(job)} required />
      {(keep.error ?? replacing.error) && <Problem error={keep.error ?? replacing.error} />}
      {replacing.question}
      <div class="dialog-end">
        <span class="grow muted" role="status">
          {keep.data && `Kept in the cache of ${keptIn ?? keep.data.project} as ${keep.data.key}.`}
        </span>
        <Button type="submit" disabled={keep.isPending || replacing.isPending}>
          {keep.isPending ? 'Keeping it …' : 'Keep it there'}
        </Button>
      </div>
    </form>
  );
}

const suggestKey = ({ name, id }: Job) =>
  (name ?? '').replace(/[^\w.-]+/g, '-').slice(0, 100) || `video-${id.slice(-6)}`;
