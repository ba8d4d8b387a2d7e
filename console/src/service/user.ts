import { useQuery } from '@tanstack/preact-query';
import { type components, unwrap } from '@windlass/client';
import { isSignedOut, queries, windlass } from './client.ts';
import { forgetCommands } from './command-history.ts';

export type CurrentUser = components['schemas']['User'];

/** Who is logged in: null where nobody is. */
export const useUser = () =>
  useQuery<CurrentUser | null>({
    queryKey: ['user'],
    queryFn: async ({ signal }) => {
      // Scripts see when a login ends: without that cookie there is none.
      if (!document.cookie.includes('servicetimeout=')) return null;
      try {
        return await unwrap(windlass.api.GET('/api/users/-', { signal }));
      } catch (error) {
        if (isSignedOut(error)) return null;
        throw error;
      }
    },
    staleTime: 60_000,
  });

/** How users log in here: `password`, and `oidc` where the service has an identity provider. */
export const useLogins = () =>
  useQuery({
    queryKey: ['logins'],
    queryFn: async ({ signal }) => (await unwrap(windlass.api.GET('/', { signal }))).logins,
    staleTime: Number.POSITIVE_INFINITY,
  });

export async function logIn(credentials: { username: string; password: string }): Promise<void> {
  await unwrap(windlass.api.POST('/api/login', { body: credentials }));
  await queries.resetQueries({ queryKey: ['user'] });
}

export async function logOut(): Promise<void> {
  await unwrap(windlass.api.DELETE('/api/logout'));
  forgetCommands();
  queries.setQueryData(['user'], null);
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'user' });
}
