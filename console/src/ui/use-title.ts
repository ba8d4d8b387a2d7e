import { useEffect } from 'preact/hooks';

/** The name of the page, in its tab and in the browser's history. */
export function useTitle(name: string): void {
  useEffect(() => {
    document.title = `${name} · Windlass`;
  }, [name]);
}
