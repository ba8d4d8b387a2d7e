import { useQuery } from '@tanstack/preact-query';
import { unwrap } from '@windlass/client';
import { windlass } from './client.ts';

export const useArray = (mid: string, aid: string) =>
  useQuery({
    queryKey: ['array', mid, aid],
    queryFn: ({ signal }) =>
      unwrap(
        windlass.api.GET('/api/models/{mid}/arrays/{aid}/metadata', {
          params: { path: { mid, aid } },
          signal,
        }),
      ),
  });

/** Values of a part of an array: of each dimension an index or a range, as in NumPy. */
export const useSlice = (mid: string, aid: string, slice: string) =>
  useQuery({
    queryKey: ['array', mid, aid, 'slice', slice],
    queryFn: ({ signal }) =>
      unwrap(
        windlass.api.GET('/api/models/{mid}/arrays/{aid}', {
          params: { path: { mid, aid }, query: { slice } },
          signal,
        }),
      ),
    placeholderData: before => before,
  });
