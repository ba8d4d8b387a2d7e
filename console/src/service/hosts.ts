import { useMutation, useQuery } from '@tanstack/preact-query';
import {
  type Challenge,
  type components,
  type OpenOptions,
  type SessionRecord,
  unwrap,
} from '@windlass/client';
import { queries, windlass } from './client.ts';

export type { Challenge, SessionRecord };
export type Host = components['schemas']['HostPage']['items'][number];
export type NewHost = components['schemas']['NewHost'];

const SESSIONS_MS = 5_000;

export const useHosts = () =>
  useQuery({
    queryKey: ['hosts'],
    queryFn: async ({ signal }) => {
      const query = { limit: 1_000 };
      return (await unwrap(windlass.api.GET('/api/hosts', { params: { query }, signal }))).items;
    },
  });

export const useSessions = () =>
  useQuery({
    queryKey: ['sessions'],
    queryFn: async ({ signal }) => {
      const query = { limit: 1_000 };
      return (await unwrap(windlass.api.GET('/api/remotes', { params: { query }, signal }))).items;
    },
    refetchInterval: SESSIONS_MS,
  });

export const useAddHost = () =>
  useMutation({
    mutationFn: (body: NewHost) => unwrap(windlass.api.POST('/api/hosts', { body })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['hosts'] }),
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
    mutationFn: (sid: string) => windlass.session(sid).close(),
    onSettled: () => queries.invalidateQueries({ queryKey: ['sessions'] }),
  });
