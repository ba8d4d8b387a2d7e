import { useEffect, useState } from 'preact/hooks';
import type { More } from '../service/pages.ts';

/** Pages of a list that are read unasked: 20,000 records. */
const PAGES = 20;
/** Rows that are drawn before more are asked for. */
const ROWS = 200;

interface List extends More {
  data: { pages: unknown[] } | undefined;
}

/** Reads a list to its end: the service has an order of its own, and here the list is sorted or searched. */
export function useReadOn(list: List): boolean {
  const { data, hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = list;
  const isReading =
    data !== undefined && hasNextPage && !isFetchNextPageError && data.pages.length < PAGES;
  useEffect(() => {
    if (isReading && !isFetchingNextPage) void fetchNextPage();
  }, [isReading, isFetchingNextPage, fetchNextPage]);
  return isReading;
}

/** The rows to draw, and what draws more: first those that were read already, then the next page of the list. */
export function useFirstRows<Row>(rows: Row[], list: List, isReading: boolean) {
  const [shown, setShown] = useState(ROWS);
  const isAll = rows.length <= shown;
  return {
    rows: rows.slice(0, shown),
    more: {
      hasNextPage: !isAll || (list.hasNextPage && !isReading),
      isFetchingNextPage: isAll && list.isFetchingNextPage,
      fetchNextPage: () => (isAll ? list.fetchNextPage() : setShown(shown + ROWS)),
    },
  };
}
