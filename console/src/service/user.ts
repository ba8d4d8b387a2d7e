import { useQuery } from '@tanstack/preact-query';
import { type components, unwrap } from '@windlass/client';
import { isSignedOut, queries, windlass } from './client.ts';
import { forgetCommands, keepCommandsOf } from './command-history.ts';

export type CurrentUser = components['schemas']['User'];

/** Who is logged in: null where nobody is. */
export const useUser = () =>
  useQuery<CurrentUser | null>({
    queryKey: ['user'],
    queryFn: async ({ signal }) => {
      // Scripts see when a login ends: without that cookie there is none.
      if (!document.cookie.includes('servicetimeout=')) return null;
      try {
        const user = await unwrap(windlass.api.GET('/api/users/-', { signal }));
        forgetOthers(user.username);
        return user;
      } catch (error) {
        if (isSignedOut(error)) return null;
        throw error;
      }
    },
    staleTime: 60_000,
  });

let known: string | undefined;

/** A login may end without a logout, and another user come: what the page knows of the one is not shown to the other. */
function forgetOthers(username: string): void {
  keepCommandsOf(username);
  const isOther = known !== undefined && known !== username;
  known = username;
  if (isOther) void queries.resetQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'user' });
}

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
