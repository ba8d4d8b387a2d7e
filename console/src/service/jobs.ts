import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/preact-query';
import {
  type BatchOptions,
  type components,
  type Job,
  type JobFilter,
  type ListedJob,
  type RunOptions,
  unwrap,
} from '@windlass/client';
import { AT_ONCE, queries, windlass } from './client.ts';
import { sendOnce } from './once.ts';

export type { Job, ListedJob };
export type JobState = Job['state'];
export type JobPage = components['schemas']['JobPage'];
export type JobCommand = components['schemas']['JobCommand'];

const PAGE = 50;
const LIST_MS = 2_000;
const JOB_MS = 3_000;

export const isEnded = ({ finished }: Pick<Job, 'finished'>): boolean => finished !== null;
/** Administrators see less of others' jobs. */
export const isOwn = (job: ListedJob): job is Job => 'label' in job;

/** The exit status of a command that came to its own end: 0 is success. */
export const exitStatus = (job: ListedJob): number | undefined =>
  isOwn(job) ? job.result?.returncode : undefined;

/** Pages of jobs that match, the latest first. They are read again while the page is visible. */
export const useJobs = (filter: JobFilter) =>
  useInfiniteQuery({
    queryKey: ['jobs', filter],
    queryFn: ({ signal, pageParam }) => {
      const query = { ...filter, limit: PAGE, after: pageParam };
      return unwrap(windlass.api.GET('/api/jobs', { params: { query }, signal, ...AT_ONCE }));
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: JobPage) => page.next ?? undefined,
    // Every page that is shown is asked for.
    refetchInterval: ({ state: { data } }) => LIST_MS * Math.max(1, data?.pages.length ?? 1),
    placeholderData: before => before,
  });

export const useJob = (id: string) =>
  useQuery<ListedJob>({
    queryKey: ['job', id],
    queryFn: ({ signal }) =>
      unwrap(windlass.api.GET('/api/jobs/{id}', { params: { path: { id } }, signal, ...AT_ONCE })),
    refetchInterval: ({ state: { data } }) => (data && isEnded(data) ? false : JOB_MS),
  });

/** What happened to a job so far. */
export const useHistory = (job: ListedJob) =>
  useQuery({
    queryKey: ['job', job.id, 'history'],
    queryFn: async ({ signal }) => {
      const params = { path: { id: job.id } };
      return (
        await unwrap(windlass.api.GET('/api/jobs/{id}/history', { params, signal, ...AT_ONCE }))
      ).items;
    },
    // The record may tell the end before the history was asked for it.
    refetchInterval: ({ state: { data } }) =>
      data?.some(({ event }) => event === 'ended') ? false : JOB_MS,
  });

/** All that a job runs, which stays as it was asked for. */
export const useJobCommand = (id: string) =>
  useQuery({
    queryKey: ['job', id, 'command'],
    queryFn: ({ signal }) =>
      unwrap(windlass.api.GET('/api/jobs/{id}/command', { params: { path: { id } }, signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Asks again for the record of a job and its history. */
export const refreshJob = (id: string) => queries.invalidateQueries({ queryKey: ['job', id] });

/** Runs a command on the host of a session, once; its job. */
export const startCommand = (sid: string, command: string, options: RunOptions) =>
  sendOnce(
    { sid, command, options },
    idempotencyKey => windlass.session(sid).run(command, { ...options, idempotencyKey }).job,
  );

/** Submits a job to the batch system of the host of a session, once. */
export const startBatch = (sid: string, batch: BatchOptions) =>
  sendOnce(
    { sid, batch },
    idempotencyKey => windlass.session(sid).batch({ ...batch, idempotencyKey }).job,
  );

export const useCancel = (id: string) =>
  useMutation({ mutationFn: () => windlass.cancel(id), onSettled: () => refreshJob(id) });

/** Starts a new job that does the same work. */
export const useRunAgain = (id: string) =>
  useMutation({
    mutationFn: () =>
      sendOnce({ retryOf: id }, async key => {
        const params = { path: { id }, header: { 'Idempotency-Key': key } };
        return (await unwrap(windlass.api.POST('/api/jobs/{id}/retry', { params }))).id;
      }),
  });

/** Removes a job's record and output. The page leaves the job, so it is not asked for again. */
export const useRemoveJob = (id: string) =>
  useMutation({
    meta: { done: 'The job is removed.' },
    mutationFn: () =>
      unwrap(windlass.api.DELETE('/api/jobs/{id}/record', { params: { path: { id } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['jobs'] }),
  });
