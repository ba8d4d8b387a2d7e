import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/preact-query';
import { type components, unwrap } from '@windlass/client';
import { queries, windlass } from './client.ts';
import { dropDraft } from './drafts.ts';
import { type FormChange, storeChanges } from './seen-changes.ts';
import { tagged } from './tagged.ts';

type Schemas = components['schemas'];
export type ProjectSummary = Schemas['ProjectSummary'];
export type Project = Schemas['Project'];
export type ProjectTexts = Pick<Project, 'name' | 'description'>;
export type CacheEntry = Schemas['CacheEntry'];
export type Role = Project['role'];

/** The most that a list gives at once. */
const PAGE = 1_000;
/** How often a record is asked for that others may change. */
const RECORD_MS = 10_000;

export { canWrite, useProjects } from './projects-of-jobs.ts';

export const useProject = (pid: string) =>
  useQuery({
    queryKey: ['project', pid],
    queryFn: ({ signal }) => readProject(pid, signal),
    refetchInterval: RECORD_MS,
  });

const readProject = (pid: string, signal?: AbortSignal) =>
  tagged(windlass.api.GET('/api/projects/{pid}', { params: { path: { pid } }, signal }));

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
    // Where the answer was lost it may be there, too.
    onSettled: () => queries.invalidateQueries({ queryKey: ['projects'] }),
  });

const putProject = (pid: string, body: Schemas['ProjectChanges'], tag: string) =>
  unwrap(
    windlass.api.PUT('/api/projects/{pid}', {
      params: { path: { pid }, header: { 'If-Match': tag } },
      body,
    }),
  );

/** Refused where it is not any more what the user saw. */
export const useChangePeople = (pid: string, tag: string) =>
  useMutation({
    meta: { done: 'The project is changed.' },
    mutationFn: (acl: Project['acl']) => putProject(pid, { acl }, tag),
    onSettled: () => projectChanged(pid),
  });

/** The name of what is typed into its form. */
export const draftOfProject = (pid: string): string => `project ${pid}`;

export const useChangeProject = (pid: string) =>
  useMutation({
    meta: { done: 'The project is changed.' },
    mutationFn: (change: FormChange<ProjectTexts>) =>
      storeChanges(
        change,
        () => readProject(pid),
        (body, tag) => putProject(pid, body, tag),
      ),
    onSettled: () => projectChanged(pid),
  });

export const useDeleteProject = (pid: string) =>
  useMutation({
    meta: { done: 'The project is deleted.' },
    mutationFn: () =>
      unwrap(windlass.api.DELETE('/api/projects/{pid}', { params: { path: { pid } } })),
    onSuccess: () => {
      dropDraft(draftOfProject(pid));
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
