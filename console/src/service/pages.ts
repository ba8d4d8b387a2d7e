import { type InfiniteData, useInfiniteQuery } from '@tanstack/preact-query';

/** One page of a list, and where the next one begins. */
interface Page<T> {
  items: T[];
  next: string | null;
}

/** How far one list was read, and how more of it is asked for. */
export interface More {
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  isFetchNextPageError: boolean;
  fetchNextPage: () => unknown;
}

/** The most that a list of the service gives at once. */
const MAX = 1_000;
/** What a table draws before more is asked for. */
export const IN_TABLE = 100;

/** A list, page by page as far as it is asked for. */
export const usePages = <T>(
  queryKey: readonly unknown[],
  ask: (
    query: { limit: number; after: string | undefined },
    signal: AbortSignal,
  ) => Promise<Page<T>>,
  { limit = MAX, ...options }: { limit?: number; staleTime?: number; enabled?: boolean } = {},
) =>
  useInfiniteQuery({
    ...options,
    queryKey,
    queryFn: ({ signal, pageParam }) => ask({ limit, after: pageParam }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: page => page.next ?? undefined,
  });

/** What was read of a list so far; undefined until something was. */
export const itemsOf = <T>(data: InfiniteData<Page<T>> | undefined): T[] | undefined =>
  data?.pages.flatMap(page => page.items);

/** All of a list that the service bounds. */
export async function readAll<T>(
  ask: (query: { limit: number; after: string | undefined }) => Promise<Page<T>>,
): Promise<T[]> {
  const items: T[] = [];
  for (let after: string | undefined; ; ) {
    const page = await ask({ limit: MAX, after });
    items.push(...page.items);
    if (page.next === null) return items;
    after = page.next;
  }
}
