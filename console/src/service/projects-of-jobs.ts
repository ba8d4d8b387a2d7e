import { useQuery } from '@tanstack/preact-query';
import { unwrap } from '@windlass/client';
import { windlass } from './client.ts';

/** Names of projects and models for the pages of jobs: the pages of projects, with all else, are loaded later. */

const MOST = 1_000;
const STALE_MS = 30_000;

export const useProjects = () =>
  useQuery({
    queryKey: ['projects', 'names'],
    queryFn: async ({ signal }) => {
      const query = { limit: MOST };
      return (await unwrap(windlass.api.GET('/api/projects', { params: { query }, signal }))).items;
    },
    staleTime: STALE_MS,
  });

export const useModels = (pid: string | undefined) =>
  useQuery({
    queryKey: ['project', pid, 'models', 'names'],
    queryFn: async ({ signal }) => {
      const params = { path: { pid: pid ?? '' }, query: { limit: MOST } };
      return (await unwrap(windlass.api.GET('/api/projects/{pid}/models', { params, signal })))
        .items;
    },
    staleTime: STALE_MS,
    enabled: pid !== undefined,
  });
