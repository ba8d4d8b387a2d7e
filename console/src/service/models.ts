import { useInfiniteQuery, useMutation } from '@tanstack/preact-query';
import { type components, unwrap } from '@windlass/client';
import { queries, windlass } from './client.ts';

type Schemas = components['schemas'];
export type Model = Schemas['Model'];
export type ModelSummary = Schemas['ModelSummary'];
export type Artifact = Schemas['Artifact'];
export type Parse = Schemas['Parse'];

const PAGE = 1_000;

export const useModels = (pid: string) =>
  useInfiniteQuery({
    queryKey: ['project', pid, 'models'],
    queryFn: ({ signal, pageParam }) => {
      const params = { path: { pid }, query: { limit: PAGE, after: pageParam } };
      return unwrap(windlass.api.GET('/api/projects/{pid}/models', { params, signal }));
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: page => page.next ?? undefined,
  });

export const useCreateModel = (pid: string) =>
  useMutation({
    mutationFn: async (body: Schemas['NewModel']) => {
      const params = { path: { pid } };
      return (await unwrap(windlass.api.POST('/api/projects/{pid}/models', { params, body }))).id;
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: ['project', pid, 'models'] }),
  });
