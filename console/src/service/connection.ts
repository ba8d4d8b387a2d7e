import type { WindlassError } from '@windlass/client';
import { useSyncExternalStore } from 'preact/compat';
import { serviceNow } from './clock.ts';

/** Whether the service answers: `lost` while requests to it are sent again. */
export interface ConnectionState {
  state: 'connected' | 'lost' | 'back';
  detail?: string;
  /** When the next attempt is made, in ms of the service's clock. */
  retryAt?: number;
}

/** How long it is said that the connection is back. */
const BACK_MS = 4_000;

let current: ConnectionState = { state: 'connected' };
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

function set(next: ConnectionState): void {
  current = next;
  for (const listener of listeners) listener();
}

export function connectionLost({ error, seconds }: { error: WindlassError; seconds: number }) {
  // The service itself answered, and asked to come later: its 429 and 503 are said where they happen.
  if (error.status !== 0 && !error.code.startsWith('http_')) return;
  clearTimeout(timer);
  set({ state: 'lost', detail: error.detail, retryAt: serviceNow() + seconds * 1_000 });
}

export function connectionWorks(): void {
  if (current.state !== 'lost') return;
  set({ state: 'back' });
  timer = setTimeout(() => set({ state: 'connected' }), BACK_MS);
}

export const useConnection = (): ConnectionState =>
  useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
