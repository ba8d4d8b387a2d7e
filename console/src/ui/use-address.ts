import { useCallback } from 'preact/hooks';
import { useLocation, useSearchParams } from 'wouter-preact';

type Changes = Record<string, string | string[] | undefined>;

/** The address's query, which holds the state of a page, and a way to change parts of it. */
export function useAddress(): [URLSearchParams, (changes: Changes) => void] {
  const [search] = useSearchParams();
  const [path, navigate] = useLocation();
  const change = useCallback(
    (changes: Changes) => {
      const next = new URLSearchParams(search);
      for (const [name, value] of Object.entries(changes)) {
        next.delete(name);
        for (const one of [value ?? []].flat()) if (one !== '') next.append(name, one);
      }
      const query = next.toString();
      navigate(query === '' ? path : `${path}?${query}`, { replace: true });
    },
    [search, path, navigate],
  );
  return [search, change];
}

/** The line that the address names, from 0. */
export function readLine(search: URLSearchParams): number | undefined {
  const line = Number(search.get('line'));
  return Number.isInteger(line) && line > 0 ? line - 1 : undefined;
}
