import { useMutation, useQuery } from '@tanstack/preact-query';
import { unwrap, WindlassError } from '@windlass/client';
import { queries, windlass } from './client.ts';
import { dropDraft } from './drafts.ts';
import { modelChanged } from './models.ts';
import { tagged } from './tagged.ts';

/** The value of a parameter: its text as it was stored, which no parser has touched. */
export const useParameter = (mid: string, aid: string) =>
  useQuery({
    queryKey: ['parameter', mid, aid],
    queryFn: async ({ signal }) => {
      const params = { path: { mid, aid } };
      const asked = windlass.api.GET('/api/models/{mid}/parameters/{aid}', {
        params,
        parseAs: 'text',
        signal,
      });
      const { record, tag } = await tagged(asked);
      return { text: String(record), tag };
    },
    // What is edited does not change below the user's hands; a change of others is told when it is stored.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });

interface Stored {
  aid: string;
  text: string;
  isInput: boolean;
  isNew: boolean;
  /** The tag of the value that is replaced; absent where there is none. */
  tag?: string;
}

/** The name of what is typed for a parameter, or for a new one. */
export const draftOf = (mid: string, aid = ''): string => `parameter ${mid} ${aid}`;

/** Stores the text as the value, byte for byte. */
export const useStoreParameter = (mid: string) =>
  useMutation({
    mutationFn: async ({ aid, text, isInput, isNew, tag }: Stored) => {
      // An API of the previous release does not know the condition.
      if (isNew) await refuseExisting(mid, aid);
      const header = tag === undefined ? { 'If-None-Match': '*' } : { 'If-Match': tag };
      const params = { path: { mid, aid }, header };
      const stored = unwrap(
        windlass.api.PUT('/api/models/{mid}/parameters/{aid}', {
          params,
          body: { value: null },
          // JSON.stringify() would round numbers.
          bodySerializer: () => `{"value":${text},"input":${isInput}}`,
          parseAs: 'text',
        }),
      );
      await stored.catch(isNew ? sayThatItExists(aid) : readAgain(mid, aid));
    },
    onSuccess: async (_, { aid, isNew }) => {
      dropDraft(draftOf(mid, isNew ? '' : aid));
      await queries.refetchQueries({ queryKey: ['parameter', mid, aid] });
      await modelChanged(mid);
    },
  });

/** The service's words are for programs. */
const sayThatItExists = (aid: string) => (error: unknown) => {
  if (!(error instanceof WindlassError && error.code === 'precondition_failed')) throw error;
  throw exists(aid);
};

/** What somebody else has stored meanwhile, or that it is no more. */
const readAgain = (mid: string, aid: string) => async (error: unknown) => {
  if (error instanceof WindlassError && error.code === 'precondition_failed')
    await Promise.all([
      queries.refetchQueries({ queryKey: ['parameter', mid, aid] }),
      modelChanged(mid),
    ]);
  throw error;
};

async function refuseExisting(mid: string, aid: string): Promise<void> {
  const params = { path: { mid, aid } };
  const asked = windlass.api.GET('/api/models/{mid}/parameters/{aid}', {
    params,
    parseAs: 'text',
  });
  if ((await asked).response.status === 404) return;
  // Where it is not known whether there is one, none is replaced.
  await unwrap(asked);
  throw exists(aid);
}

const exists = (aid: string) =>
  new WindlassError({
    code: 'exists',
    detail: `There is a parameter ${aid} already.`,
    hint: 'Choose another name, or change that one.',
  });
