import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/preact-query';
import { type components, unwrap } from '@windlass/client';
import { queries, windlass } from './client.ts';
import { dropDraft } from './drafts.ts';
import { type FormChange, storeChanges } from './seen-changes.ts';
import { tagged } from './tagged.ts';

type Schemas = components['schemas'];
export type Model = Schemas['Model'];
export type ModelTexts = Pick<Model, 'name' | 'description' | 'marking'>;
export type ModelSummary = Schemas['ModelSummary'];
export type Artifact = Schemas['Artifact'];
export type Parse = Schemas['Parse'];

const PAGE = 1_000;
/** The most artifacts that one answer has. */
const MAX_ARTIFACTS = 10_000;

export { useModels } from './projects-of-jobs.ts';

export const useCreateModel = (pid: string) =>
  useMutation({
    meta: { done: 'The model is made.' },
    mutationFn: async (body: Schemas['NewModel']) => {
      const params = { path: { pid } };
      return (await unwrap(windlass.api.POST('/api/projects/{pid}/models', { params, body }))).id;
    },
    // Where the answer was lost it may be there, too.
    onSettled: () => queries.invalidateQueries({ queryKey: ['project', pid, 'models'] }),
  });

/** How often a model is asked for, while something is parsed and otherwise. */
const PARSING_MS = 1_500;
const QUIET_MS = 10_000;

/** A model with its artifacts, page by page; the first page has its parses. */
export const useModel = (mid: string) =>
  useInfiniteQuery({
    queryKey: ['model', mid],
    queryFn: ({ signal, pageParam }) => {
      const params = { path: { mid }, query: { limit: PAGE, after: pageParam } };
      return unwrap(windlass.api.GET('/api/models/{mid}', { params, signal }));
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: page => page.next ?? undefined,
    refetchInterval: ({ state: { data } }) =>
      data?.pages[0]?.parses.some(({ state }) => state === 'parsing') ? PARSING_MS : QUIET_MS,
  });

export const modelChanged = (mid: string) =>
  queries.invalidateQueries({ queryKey: ['model', mid] });

/** All artifacts of a model, for what is said about names in it. */
export const useAllArtifacts = (mid: string, { enabled }: { enabled: boolean }) =>
  useQuery({
    queryKey: ['model', mid, 'artifacts'],
    queryFn: async ({ signal }) => {
      const all: Artifact[] = [];
      for (let after: string | undefined; ; ) {
        const params = { path: { mid }, query: { limit: MAX_ARTIFACTS, after } };
        const page = await unwrap(windlass.api.GET('/api/models/{mid}', { params, signal }));
        all.push(...page.artifacts);
        if (page.next === null) return all;
        after = page.next;
      }
    },
    refetchInterval: QUIET_MS,
    enabled,
  });

/** One artifact of a model; null where there is none of that name. */
export const useArtifact = (mid: string, aid: string) =>
  useQuery({
    queryKey: ['model', mid, 'artifact', aid],
    queryFn: async ({ signal }): Promise<Artifact | null> => {
      for (let after: string | undefined; ; ) {
        const params = { path: { mid }, query: { limit: MAX_ARTIFACTS, after } };
        const page = await unwrap(windlass.api.GET('/api/models/{mid}', { params, signal }));
        const found = page.artifacts.find(artifact => artifact.aid === aid);
        if (found || page.next === null) return found ?? null;
        after = page.next;
      }
    },
  });

/** The name of what is typed into its form. */
export const draftOfModel = (mid: string): string => `model ${mid}`;

export const useChangeModel = ({ id: mid, project: pid }: Model) =>
  useMutation({
    mutationFn: (change: FormChange<ModelTexts>) =>
      storeChanges(
        change,
        // Its validator changes with what is stored in it, too: one from when typing began would refuse most changes.
        () => {
          const params = { path: { mid }, query: { limit: 1 } };
          return tagged(windlass.api.GET('/api/models/{mid}', { params }));
        },
        (body, tag) => {
          const params = { path: { mid }, header: { 'If-Match': tag } };
          return unwrap(windlass.api.PUT('/api/models/{mid}', { params, body }));
        },
      ),
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: ['project', pid, 'models'] });
      return modelChanged(mid);
    },
  });

export const useDeleteModel = ({ id: mid, project: pid }: Model) =>
  useMutation({
    meta: { done: 'The model is deleted.' },
    mutationFn: () =>
      unwrap(windlass.api.DELETE('/api/models/{mid}', { params: { path: { mid } } })),
    onSuccess: () => {
      dropDraft(draftOfModel(mid));
      queries.removeQueries({ queryKey: ['model', mid] });
      return queries.invalidateQueries({ queryKey: ['project', pid, 'models'] });
    },
  });

/** Where the bytes of an artifact are, for a download. */
export const artifactPath = (mid: string, { aid, type }: Pick<Artifact, 'aid' | 'type'>) =>
  `models/${mid}/${type}s/${encodeURIComponent(aid)}${type === 'table' || type === 'array' ? '/data' : ''}`;

/** What its file is called once it is downloaded. */
export function downloadName({ aid, type }: Pick<Artifact, 'aid' | 'type'>): string {
  const name = aid.replaceAll('/', '-');
  const ending = { table: '.parquet', array: '.npy', parameter: '.json', file: '' }[type];
  return name.endsWith(ending) ? name : `${name}${ending}`;
}

export const useRemoveArtifact = (mid: string) =>
  useMutation({
    meta: { done: 'It is removed from the model.' },
    mutationFn: async ({ aid, type }: Artifact) => {
      const params = { path: { mid, aid } };
      const { api } = windlass;
      const remove = {
        parameter: () => api.DELETE('/api/models/{mid}/parameters/{aid}', { params }),
        table: () => api.DELETE('/api/models/{mid}/tables/{aid}', { params }),
        file: () => api.DELETE('/api/models/{mid}/files/{aid}', { params }),
        array: () => api.DELETE('/api/models/{mid}/arrays/{aid}', { params }),
      };
      await unwrap<unknown>(remove[type]());
    },
    onSettled: () => modelChanged(mid),
  });
