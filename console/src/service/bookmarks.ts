import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/preact-query';
import { type components, unwrap } from '@windlass/client';
import { queries, windlass } from './client.ts';
import { dropDraft } from './drafts.ts';

export type Bookmark = components['schemas']['BookmarkEntry'];

const PAGE = 1_000;

export const useBookmarks = (pid: string) =>
  useInfiniteQuery({
    queryKey: ['project', pid, 'bookmarks'],
    queryFn: ({ signal, pageParam }) => {
      const params = { path: { pid }, query: { limit: PAGE, after: pageParam } };
      return unwrap(windlass.api.GET('/api/projects/{pid}/bookmarks', { params, signal }));
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: page => page.next ?? undefined,
  });

/** What is in it, as it was stored. */
export const useBookmark = (bid: string) =>
  useQuery({
    queryKey: ['bookmark', bid],
    queryFn: async ({ signal }) =>
      String(
        await unwrap(
          windlass.api.GET('/api/bookmarks/{bid}', {
            params: { path: { bid } },
            parseAs: 'text',
            signal,
          }),
        ),
      ),
    staleTime: Number.POSITIVE_INFINITY,
  });

const bookmarksChanged = (pid: string) =>
  queries.invalidateQueries({ queryKey: ['project', pid, 'bookmarks'] });

/** The name of what is typed for a new bookmark. */
export const draftOfBookmark = (pid: string): string => `bookmark ${pid}`;

/** Stores a JSON object, byte for byte; its id. */
export const useStoreBookmark = (pid: string) =>
  useMutation({
    meta: { done: 'The bookmark is stored.' },
    mutationFn: async (text: string) => {
      const asked = windlass.api.POST('/api/projects/{pid}/bookmarks', {
        params: { path: { pid } },
        body: {},
        bodySerializer: () => text,
      });
      return (await unwrap(asked)).id;
    },
    onSuccess: () => {
      dropDraft(draftOfBookmark(pid));
      return bookmarksChanged(pid);
    },
  });

export const useRemoveBookmark = (pid: string) =>
  useMutation({
    meta: { done: 'The bookmark is removed.' },
    mutationFn: (bid: string) =>
      unwrap(windlass.api.DELETE('/api/bookmarks/{bid}', { params: { path: { bid } } })),
    onSettled: () => bookmarksChanged(pid),
  });
