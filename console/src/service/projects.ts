import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/preact-query';
import { type components, unwrap } from '@windlass/client';
import { queries, windlass } from './client.ts';

type Schemas = components['schemas'];
export type ProjectSummary = Schemas['ProjectSummary'];
export type Project = Schemas['Project'];
export type ProjectChanges = Schemas['ProjectChanges'];
export type CacheEntry = Schemas['CacheEntry'];
export type Role = Project['role'];

/** A record with the validator by which a change of it is refused where somebody else changed it meanwhile. */
export interface Tagged<Record> {
  record: Record;
  tag: string;
}

/** An answer with its validator. */
export async function tagged<Record>(
  asked: Promise<{ data?: Record; error?: unknown; response: Response }>,
): Promise<Tagged<Record>> {
  const record = await unwrap(asked);
  return { record, tag: (await asked).response.headers.get('ETag') ?? '' };
}

/** The most that a list gives at once. */
const PAGE = 1_000;
/** How often a record is asked for that others may change. */
const RECORD_MS = 10_000;

export const canWrite = ({ role }: Pick<Project, 'role'>): boolean => role !== 'reader';

export { useProjects } from './projects-of-jobs.ts';

export const useProject = (pid: string) =>
  useQuery({
    queryKey: ['project', pid],
    queryFn: ({ signal }) =>
      tagged(windlass.api.GET('/api/projects/{pid}', { params: { path: { pid } }, signal })),
    refetchInterval: RECORD_MS,
  });

const projectChanged = (pid: string) =>
  Promise.all([
    queries.invalidateQueries({ queryKey: ['projects'] }),
    queries.invalidateQueries({ queryKey: ['project', pid] }),
  ]);

export const useCreateProject = () =>
  useMutation({
    meta: { done: 'The project is made.' },
    mutationFn: async (body: Schemas['NewProject']) =>
      (await unwrap(windlass.api.POST('/api/projects', { body }))).id,
    onSuccess: () => queries.invalidateQueries({ queryKey: ['projects'] }),
  });

/** Refused where it is not any more what the user saw. */
export const useChangeProject = (pid: string, tag: string) =>
  useMutation({
    meta: { done: 'The project is changed.' },
    mutationFn: (body: ProjectChanges) =>
      unwrap(
        windlass.api.PUT('/api/projects/{pid}', {
          params: { path: { pid }, header: { 'If-Match': tag } },
          body,
        }),
      ),
    onSettled: () => projectChanged(pid),
  });

export const useDeleteProject = (pid: string) =>
  useMutation({
    meta: { done: 'The project is deleted.' },
    mutationFn: () =>
      unwrap(windlass.api.DELETE('/api/projects/{pid}', { params: { path: { pid } } })),
    onSuccess: () => {
      queries.removeQueries({ queryKey: ['project', pid] });
      return queries.invalidateQueries({ queryKey: ['projects'] });
    },
  });

/** Videos that are kept in the project. */
export const useCache = (pid: string) =>
  useInfiniteQuery({
    queryKey: ['project', pid, 'cache'],
    queryFn: ({ signal, pageParam }) => {
      const params = { path: { pid }, query: { limit: PAGE, after: pageParam } };
      return unwrap(windlass.api.GET('/api/projects/{pid}/cache', { params, signal }));
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: page => page.next ?? undefined,
  });

export const useRemoveCached = (pid: string) =>
  useMutation({
    meta: { done: 'The video is removed.' },
    mutationFn: (key: string) =>
      unwrap(
        windlass.api.DELETE('/api/projects/{pid}/cache/{key}', { params: { path: { pid, key } } }),
      ),
    onSettled: () => queries.invalidateQueries({ queryKey: ['project', pid, 'cache'] }),
  });
