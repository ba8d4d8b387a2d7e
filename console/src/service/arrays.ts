import { useQuery } from '@tanstack/preact-query';
import { queries, windlass } from './client.ts';
import { tagged } from './tagged.ts';

/** How often the service is asked whether another array has taken its place. */
const ARRAY_MS = 10_000;

const keyOf = (mid: string, aid: string) => ['array', mid, aid];

export const useArray = (mid: string, aid: string) =>
  useQuery({
    queryKey: keyOf(mid, aid),
    queryFn: ({ signal }) =>
      tagged(
        windlass.api.GET('/api/models/{mid}/arrays/{aid}/metadata', {
          params: { path: { mid, aid } },
          signal,
        }),
      ),
    refetchInterval: ARRAY_MS,
  });

/** An array of a model, as it is until another one takes its place. */
export interface ArrayKey {
  mid: string;
  aid: string;
  /** The array's entity tag. */
  tag: string;
}

/** Values of a part of an array: of each dimension an index or a range, as in NumPy. */
export const useSlice = ({ mid, aid, tag }: ArrayKey, slice: string) =>
  useQuery({
    queryKey: [...keyOf(mid, aid), tag, slice],
    queryFn: async ({ signal }) => {
      const part = await tagged(
        windlass.api.GET('/api/models/{mid}/arrays/{aid}', {
          params: { path: { mid, aid }, query: { slice } },
          signal,
        }),
      );
      // They are of another array, whose shape and tag are asked for before its values are shown.
      if (part.tag !== tag)
        await queries.refetchQueries({ queryKey: keyOf(mid, aid), exact: true });
      return part.record;
    },
  });
