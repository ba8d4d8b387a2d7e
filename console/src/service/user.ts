import { useQuery } from '@tanstack/preact-query';
import { type components, unwrap } from '@windlass/client';
import { AT_ONCE, isSignedOut, queries, windlass } from './client.ts';
import { forgetCommands, keepCommandsOf, readUnsent } from './command-history.ts';
import { usePages } from './pages.ts';
import { SERVICE_PATH } from './place.ts';
import { forgetUploads } from './remembered-uploads.ts';

export type CurrentUser = components['schemas']['User'];

/** Who is logged in: null where nobody is. */
export const useUser = () =>
  useQuery<CurrentUser | null>({
    queryKey: ['user'],
    queryFn: async ({ signal }) => {
      // Scripts see when a login ends: without that cookie there is none.
      if (!document.cookie.includes('servicetimeout=')) return null;
      try {
        const user = await unwrap(windlass.api.GET('/api/users/-', { signal, ...AT_ONCE }));
        forgetOthers(user.username);
        return user;
      } catch (error) {
        if (isSignedOut(error)) return null;
        throw error;
      }
    },
    staleTime: 60_000,
  });

/** The last user of this page, until they leave it. */
let known: string | undefined;
const leaving = new Set<() => void>();

/** Called where what the page keeps of its user goes: they logged out, or another one came. */
export const whenUserLeaves = (forget: () => void) => leaving.add(forget);

/** A login that ends by itself is made again over the page, which waits behind it; a logout leaves nothing. */
export const waitsForUser = () => known !== undefined;

/** The tabs of a browser have the same cookies: who logs in or out in one does so in all of them. */
const tabs = new BroadcastChannel(`windlass ${SERVICE_PATH}`);
tabs.onmessage = ({ data }) => {
  if (data === 'left') leave();
  else if (data === 'loses?') {
    if (losesHere()) tabs.postMessage('loses');
  } else if (data === 'loses') onLoss?.();
  else void queries.invalidateQueries({ queryKey: ['user'] });
};

/** A login may end without a logout, and another user come: what the page knows of the one is not shown to the other. */
function forgetOthers(username: string): void {
  if (keepCommandsOf(username)) forgetUploads();
  if (known === username) return;
  const isOther = known !== undefined;
  known = username;
  tabs.postMessage('came');
  if (!isOther) return;
  for (const forget of leaving) forget();
  void queries.resetQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'user' });
}

/** How long other tabs have to tell what they would lose. */
const TELL_MS = 300;
let onLoss: (() => void) | undefined;

/** What the browser would ask about before this page is closed, and a command that a reload would bring back. */
const losesHere = (): boolean =>
  !dispatchEvent(new Event('beforeunload', { cancelable: true })) || readUnsent() !== undefined;

/** Where a logout loses what is typed and not stored, or being sent; undefined where it loses nothing. */
export async function findLoss(): Promise<'here' | 'elsewhere' | undefined> {
  if (losesHere()) return 'here';
  return new Promise(resolve => {
    onLoss = () => resolve('elsewhere');
    setTimeout(resolve, TELL_MS, undefined);
    tabs.postMessage('loses?');
  });
}

function leave(): void {
  known = undefined;
  forgetCommands();
  forgetUploads();
  for (const forget of leaving) forget();
  queries.setQueryData(['user'], null);
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'user' });
}

/** In the order of their names, for server administrators. */
export const useUsers = () =>
  usePages(
    ['users'],
    (query, signal) => unwrap(windlass.api.GET('/api/users', { params: { query }, signal })),
    { staleTime: 30_000 },
  );

/** How users log in here: `password`, and `oidc` where the service has an identity provider. */
export const useLogins = () =>
  useQuery({
    queryKey: ['logins'],
    queryFn: async ({ signal }) => (await unwrap(windlass.api.GET('/', { signal }))).logins,
    staleTime: Number.POSITIVE_INFINITY,
  });

export async function logIn(credentials: { username: string; password: string }): Promise<void> {
  await unwrap(windlass.api.POST('/api/login', { body: credentials }));
  tabs.postMessage('came');
  await queries.invalidateQueries({ queryKey: ['user'] });
}

export async function logOut(): Promise<void> {
  await unwrap(windlass.api.DELETE('/api/logout'));
  leave();
  tabs.postMessage('left');
}
