import type { Query } from '@tanstack/preact-query';
import { WindlassError } from '@windlass/client';
import { useSyncExternalStore } from 'preact/compat';
import { isSignedOut, queries } from './client.ts';

/** Failures of the connection or of an overloaded service, not of what was asked for, such as an unreachable host. */
export const mayPass = (error: unknown): boolean =>
  error instanceof WindlassError &&
  error.job === undefined &&
  ([0, 429, 502, 503, 504].includes(error.status) ||
    error.code === 'internal' ||
    // Other programs' answers, such as a page that asks for a login to a network.
    error.code === 'foreign_answer' ||
    error.code.startsWith('http_'));

/** No word of the service came of it: it may be done, or not. */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof WindlassError &&
  error.job === undefined &&
  (['unreachable', 'foreign_answer', 'internal'].includes(error.code) ||
    error.code.startsWith('http_'));

/** Repeats the requests of what is shown and failed: not all of it is polled. */
export const askAgain = (): Promise<void> =>
  queries.refetchQueries({
    type: 'active',
    predicate: ({ state }) =>
      state.status === 'error' && state.fetchStatus === 'idle' && mayPass(state.error),
  });

/** An earlier answer is shown, and the latest attempt brought none. */
const isOld = ({ state, queryKey }: Query): boolean =>
  state.status === 'error' &&
  state.data !== undefined &&
  // Who looks at nothing new but an older page is told there.
  state.fetchMeta?.fetchMore === undefined &&
  queryKey[0] !== 'user' &&
  !isSignedOut(state.error);

const findOld = () => queries.getQueryCache().findAll({ type: 'active', predicate: isOld })[0];

/** Why something that is shown may be old; null where nothing is. */
export const useOld = (): Error | null =>
  useSyncExternalStore(
    listener => queries.getQueryCache().subscribe(listener),
    () => findOld()?.state.error ?? null,
  );
