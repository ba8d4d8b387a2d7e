import { useMutation, useQuery } from '@tanstack/preact-query';
import {
  type Challenge,
  type components,
  type OpenOptions,
  type SessionRecord,
  unwrap,
  WindlassError,
} from '@windlass/client';
import { AT_ONCE, queries, windlass } from './client.ts';
import { IN_TABLE, readAll, usePages } from './pages.ts';

export type { Challenge, SessionRecord };
export type Host = components['schemas']['HostPage']['items'][number];

const SESSIONS_MS = 5_000;

/** In the order of their names. */
export const useHosts = () =>
  usePages(['hosts'], (query, signal) =>
    unwrap(windlass.api.GET('/api/hosts', { params: { query }, signal })),
  );

/** For tables, which draw all that was read. */
export const useHostsInTable = () =>
  usePages(
    ['hosts', 'table'],
    (query, signal) => unwrap(windlass.api.GET('/api/hosts', { params: { query }, signal })),
    { limit: IN_TABLE },
  );

/** One host; null where there is none of that name, or it is not for the user. */
export const useHost = (name: string | undefined) =>
  useQuery({
    queryKey: ['hosts', 'one', name],
    queryFn: ({ signal }) => readHost(name, signal),
    staleTime: 10_000,
    enabled: name !== undefined,
  });

/** One host for a form that opens: always fresh, never from an earlier look. */
export const useHostToChange = (name: string | undefined) =>
  useQuery({
    queryKey: ['hosts', 'to change', name],
    queryFn: ({ signal }) => readHost(name, signal),
    gcTime: 0,
    enabled: name !== undefined,
  });

async function readHost(name = '', signal?: AbortSignal): Promise<Host | null> {
  const params = { path: { name } };
  try {
    return await unwrap(windlass.api.GET('/api/hosts/{name}', { params, signal }));
  } catch (error) {
    if (error instanceof WindlassError && NOT_THERE.includes(error.code)) return null;
    throw error;
  }
}
const NOT_THERE = ['not_found', 'host_not_allowed'];

export const useSessions = () =>
  useQuery({
    queryKey: ['sessions'],
    // LIMIT_SESSIONS bounds them.
    queryFn: ({ signal }) =>
      readAll(query =>
        unwrap(windlass.api.GET('/api/remotes', { params: { query }, signal, ...AT_ONCE })),
      ),
    refetchInterval: SESSIONS_MS,
  });

export interface HostLogin extends OpenOptions {
  hostname: string;
  /** The session that needs another login, because its connection was lost. */
  again: string | undefined;
}

/** Logs in to a host. `answer` is asked where the host wants more, such as a one-time code. */
export const useOpenSession = () =>
  useMutation({
    mutationFn: async ({ again, hostname, username, ...options }: HostLogin) => {
      if (again === undefined) return windlass.open(hostname, { username, ...options });
      const session = windlass.session(again);
      await session.login(options);
      return session;
    },
    // What was typed is kept nowhere once it was sent.
    gcTime: 0,
    onSuccess: () => queries.invalidateQueries({ queryKey: ['sessions'] }),
  });

export const useCloseSession = () =>
  useMutation({
    meta: { done: 'The login on the host is ended.' },
    mutationFn: (sid: string) => windlass.session(sid).close(),
    onSettled: () => queries.invalidateQueries({ queryKey: ['sessions'] }),
  });
