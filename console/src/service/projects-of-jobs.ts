import { useQuery } from '@tanstack/preact-query';
import { unwrap } from '@windlass/client';
import { windlass } from './client.ts';
import { usePages } from './pages.ts';

/** Projects and models for the pages of jobs: the pages of projects, with all else, are loaded later. */

const STALE_MS = 30_000;

export const canWrite = ({ role }: { role: 'administrator' | 'writer' | 'reader' }): boolean =>
  role !== 'reader';

/** Without a time each page that has them requests them again. */
export const useProjects = ({ staleTime }: { staleTime?: number } = {}) =>
  usePages(
    ['projects'],
    (query, signal) => unwrap(windlass.api.GET('/api/projects', { params: { query }, signal })),
    staleTime === undefined ? {} : { staleTime },
  );

/** Those of no project are not asked for. */
export const useModels = (pid: string | undefined) =>
  usePages(
    ['project', pid, 'models'],
    (query, signal) => {
      const params = { path: { pid: pid ?? '' }, query };
      return unwrap(windlass.api.GET('/api/projects/{pid}/models', { params, signal }));
    },
    { enabled: pid !== undefined },
  );

/** What people call a project; undefined where it is not known to the user. */
export const useProjectName = (pid: string | undefined) =>
  useQuery({
    queryKey: ['project', pid, 'name'],
    queryFn: async ({ signal }) => {
      const params = { path: { pid: pid ?? '' } };
      return (await unwrap(windlass.api.GET('/api/projects/{pid}', { params, signal }))).name;
    },
    staleTime: STALE_MS,
    enabled: pid !== undefined,
  }).data;

export const useModelName = (mid: string | undefined) =>
  useQuery({
    queryKey: ['model', mid, 'name'],
    queryFn: async ({ signal }) => {
      const params = { path: { mid: mid ?? '' }, query: { limit: 1 } };
      return (await unwrap(windlass.api.GET('/api/models/{mid}', { params, signal }))).name;
    },
    staleTime: STALE_MS,
    enabled: mid !== undefined,
  }).data;
