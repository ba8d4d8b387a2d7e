import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { FindLines } from './find-lines.ts';
import type { FollowedLog } from './use-log.ts';

const SLICE_MS = 6;

export interface Find {
  query: string;
  setQuery: (query: string) => void;
  /** Lines that match so far. */
  count: number;
  /** Which of them is shown, from 0. */
  at: number | undefined;
  /** The next match, or the one before; its line. */
  go: (step: 1 | -1) => number | undefined;
}

/** Searches a log, and what comes later, without blocking the page. */
export function useFind(
  { log, subscribe }: FollowedLog,
  { query, setQuery }: Pick<Find, 'query' | 'setQuery'>,
): Find {
  const [count, setCount] = useState(0);
  const [at, setAt] = useState<number>();
  const found = useRef<FindLines>();
  useEffect(() => {
    setCount(0);
    setAt(undefined);
    found.current = undefined;
    if (query === '') return;
    const find = new FindLines(log, query);
    found.current = find;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const work = () => {
      timer = undefined;
      find.step(SLICE_MS);
      setCount(find.matches.length);
      if (!find.isDone && !find.isWaiting) begin();
    };
    const begin = () => {
      timer ??= setTimeout(work);
    };
    begin();
    const unsubscribe = subscribe(begin);
    return () => {
      unsubscribe();
      clearTimeout(timer);
    };
  }, [query, log, subscribe]);
  const go = useCallback(
    (step: 1 | -1) => {
      const matches = found.current?.matches ?? [];
      if (matches.length === 0) return undefined;
      const before = at ?? (step === 1 ? -1 : 0);
      const next = (before + step + matches.length) % matches.length;
      setAt(next);
      return matches[next];
    },
    [at],
  );
  return { query, setQuery, count, at, go };
}
