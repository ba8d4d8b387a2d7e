import { QueryClient } from '@tanstack/preact-query';
import { Windlass, WindlassError } from '@windlass/client';
import { readClock } from './clock.ts';
import { connectionLost, connectionWorks } from './connection.ts';
import { SERVICE_PATH } from './place.ts';
import { fetchAndTell } from './send-file.ts';

/** The console's only way to the service: the client that users' programs have, with the cookies of the page's login. */
export const windlass = new Windlass({
  url: SERVICE_PATH,
  onRetry: connectionLost,
  fetch: async (request, init) => {
    const answer = await fetchAndTell(request as Request, init);
    // What a proxy says instead of the service is a page.
    const isForeign = /\bhtml\b/.test(answer.headers.get('Content-Type') ?? '');
    if (answer.status < 502 && !isForeign) {
      readClock(answer);
      connectionWorks();
    }
    return answer;
  },
});

/** For requests that the service answers at once: a later answer was lost, and is requested again. */
export const AT_ONCE = { timeoutMs: 15_000 };

/** The client itself sends requests again that may be. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: { retry: false, networkMode: 'always', staleTime: 1_000 },
    mutations: { retry: false, networkMode: 'always' },
  },
});

/**
 * Logs the page out where an answer says that nobody is logged in. An older error, which stays until the next answer,
 * does not count.
 */
queries.getQueryCache().subscribe(event => {
  if (event.type !== 'updated' || event.action.type !== 'error') return;
  if (isSignedOut(event.action.error) && event.query.queryKey[0] !== 'user')
    queries.setQueryData(['user'], null);
});
queries.getMutationCache().subscribe(event => {
  if (event.type === 'updated' && event.action.type === 'error') askWhoIsThere(event.action.error);
});

/** After an answer that nobody is logged in: it may concern only a password in the request. */
export function askWhoIsThere(error: unknown): void {
  if (isSignedOut(error)) void queries.invalidateQueries({ queryKey: ['user'] });
}

export const isSignedOut = (error: unknown): boolean =>
  error instanceof WindlassError && error.status === 401;
