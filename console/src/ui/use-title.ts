import { useEffect, useSyncExternalStore } from 'preact/compat';

let present = '';
const listeners = new Set<() => void>();

/** The name of the page, in its tab and in the browser's history, and for who hears it. */
export function useTitle(name: string): void {
  useEffect(() => {
    document.title = `${name} · Windlass`;
    present = name;
    for (const tell of listeners) tell();
  }, [name]);
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

export const usePresentTitle = (): string => useSyncExternalStore(subscribe, () => present);
