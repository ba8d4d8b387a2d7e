import { Button } from './button.tsx';

interface MoreProps {
  /** An infinite query. */
  list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
  /** What the next page has. */
  children: string;
}

/** The button at the end of a list, where there is more of it. */
export function More({ list, children }: MoreProps) {
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  if (!hasNextPage) return null;
  return (
    <div class="more">
      <Button disabled={isFetchingNextPage} onClick={() => fetchNextPage()}>
        {isFetchingNextPage ? 'Asking for more …' : children}
      </Button>
    </div>
  );
}
