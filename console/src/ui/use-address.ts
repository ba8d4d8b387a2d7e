import { useCallback, useMemo } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
// The router's own decodes it once more: of a%2503 the rest is lost.
import { useSearch } from 'wouter-preact/use-browser-location';

type Changes = Record<string, string | string[] | undefined>;

/**
 * The address's query, which holds a page's state, and a function that changes parts of it. A `step` is a history
 * entry: the browser's way back leads to it.
 */
export function useAddress(): [
  URLSearchParams,
  (changes: Changes, options?: { step?: boolean }) => void,
] {
  const query = useSearch();
  const search = useMemo(() => new URLSearchParams(query), [query]);
  const [path, navigate] = useLocation();
  const change = useCallback(
    (changes: Changes, { step = false } = {}) => {
      // As it is by now: an answer may come long after the page was drawn.
      const next = new URLSearchParams(location.search);
      for (const [name, value] of Object.entries(changes)) {
        next.delete(name);
        for (const one of [value ?? []].flat()) if (one !== '') next.append(name, one);
      }
      navigate(next.size === 0 ? path : `${path}?${next}`, { replace: !step });
    },
    [path, navigate],
  );
  return [search, change];
}

/** The line that the address names, from 0. */
export function readLine(search: URLSearchParams): number | undefined {
  const line = Number(search.get('line'));
  return Number.isInteger(line) && line > 0 ? line - 1 : undefined;
}
