import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/preact-query';
import { type components, unwrap } from '@windlass/client';
import { AT_ONCE, queries, windlass } from './client.ts';
import { serviceNow } from './clock.ts';
import { IN_TABLE, readAll, usePages } from './pages.ts';
import { type FormChange, storeChanges } from './seen-changes.ts';
import { tagged } from './tagged.ts';

/** What server administrators see and do. */

type Schemas = components['schemas'];
export type Worker = Schemas['Worker'];
export type Setting = Schemas['Setting'];
export type Statistic = Schemas['JobStatistic'];
export type FullHost = Schemas['Host'];
export type HostMembers = Omit<FullHost, 'name' | 'fingerprints' | 'created'>;
export type HostKeys = Schemas['HostKeys'];
export type HostEndpoint = Schemas['HostEndpoint'];
export type UserRecord = Schemas['User'];
export type UserDetails = Schemas['UserDetails'];
export type Token = Schemas['Token'];
export type AuditEntry = Schemas['AuditEntry'];
export type AuditAction = AuditEntry['action'];

const WORKERS_MS = 3_000;
const STATISTICS_MS = 30_000;
const AUDIT_PAGE = 100;

export const useWorkers = () =>
  useQuery({
    queryKey: ['workers'],
    queryFn: async ({ signal }) =>
      (await unwrap(windlass.api.GET('/api/workers', { signal, ...AT_ONCE }))).items,
    refetchInterval: WORKERS_MS,
  });

export const useDrain = () =>
  useMutation({
    mutationFn: ({ id, draining }: Pick<Worker, 'id' | 'draining'>) =>
      unwrap(
        windlass.api.PUT('/api/workers/{id}', { params: { path: { id } }, body: { draining } }),
      ),
    onSettled: () => queries.invalidateQueries({ queryKey: ['workers'] }),
  });

/** The statistics of the last `seconds`, in steps of `step` seconds. */
export const useStatistics = ({ seconds, step }: { seconds: number; step: number }) =>
  useQuery({
    queryKey: ['statistics', seconds, step],
    queryFn: ({ signal }) => {
      const since = new Date(serviceNow() - seconds * 1_000).toISOString();
      return unwrap(windlass.api.GET('/api/stats', { params: { query: { since, step } }, signal }));
    },
    refetchInterval: STATISTICS_MS,
    placeholderData: before => before,
  });

export const useSettings = () =>
  useQuery({
    queryKey: ['settings'],
    queryFn: async ({ signal }) =>
      (await unwrap(windlass.api.GET('/api/settings', { signal }))).items,
  });

/** Administrators see all of a host. */
export const isFull = (host: FullHost | Schemas['HostName']): host is FullHost => 'keys' in host;

const hostsChanged = () => queries.invalidateQueries({ queryKey: ['hosts'] });

/** The keys that a machine shows now. */
export const useScan = () =>
  useMutation({
    mutationFn: (body: HostEndpoint) => unwrap(windlass.api.POST('/api/hosts/-/scan', { body })),
  });

export const usePinHost = () =>
  useMutation({
    meta: { done: 'The host is added.' },
    mutationFn: (body: Schemas['NewHost']) => unwrap(windlass.api.POST('/api/hosts', { body })),
    onSuccess: hostsChanged,
  });

export const useChangeHost = (name: string) =>
  useMutation({
    meta: { done: 'The host is changed.' },
    mutationFn: (change: FormChange<HostMembers>) =>
      storeChanges(
        change,
        () => tagged(windlass.api.GET('/api/hosts/{name}', { params: { path: { name } } })),
        (body, tag) => {
          const params = { path: { name }, header: { 'If-Match': tag } };
          return unwrap(windlass.api.PUT('/api/hosts/{name}', { params, body }));
        },
      ),
    onSuccess: hostsChanged,
  });

export const useRemoveHost = (name: string) =>
  useMutation({
    meta: { done: 'The host is removed.' },
    mutationFn: () =>
      unwrap(windlass.api.DELETE('/api/hosts/{name}', { params: { path: { name } } })),
    onSuccess: hostsChanged,
  });

/** The users for the table, which draws all that were read. */
export const useUsersInTable = () =>
  usePages(
    ['users', 'table'],
    (query, signal) => unwrap(windlass.api.GET('/api/users', { params: { query }, signal })),
    { limit: IN_TABLE },
  );

export const useOneUser = (username: string | undefined) =>
  useQuery({
    queryKey: ['users', 'one', username],
    queryFn: ({ signal }) => {
      const params = { path: { username: username ?? '' } };
      return unwrap(windlass.api.GET('/api/users/{username}', { params, signal }));
    },
    enabled: username !== undefined,
  });

/** All users, for what the page says about all of them. */
export const useAllUsers = () =>
  useQuery({
    queryKey: ['users', 'all'],
    queryFn: ({ signal }) =>
      readAll(query => unwrap(windlass.api.GET('/api/users', { params: { query }, signal }))),
    staleTime: 60_000,
  });

const usersChanged = () => queries.invalidateQueries({ queryKey: ['users'] });

export const useAddUser = () =>
  useMutation({
    meta: { done: 'The user is added.' },
    mutationFn: (body: Schemas['NewUser']) => unwrap(windlass.api.POST('/api/users', { body })),
    gcTime: 0,
    onSuccess: usersChanged,
  });

export const useChangeUser = (username: string) =>
  useMutation({
    mutationFn: (body: Schemas['UserChanges']) =>
      unwrap(windlass.api.PUT('/api/users/{username}', { params: { path: { username } }, body })),
    gcTime: 0,
    onSuccess: usersChanged,
  });

export const useRemoveUser = (username: string) =>
  useMutation({
    meta: { done: 'The user is removed.' },
    /** Who gets the projects that nobody else is in; undefined: they are deleted. */
    mutationFn: (projectsTo: string | undefined) => {
      const params = { path: { username }, query: { projectsTo } };
      return unwrap(windlass.api.DELETE('/api/users/{username}', { params }));
    },
    onSuccess: usersChanged,
  });

export const useTokensOf = (username: string) =>
  useQuery({
    queryKey: ['tokens', username],
    queryFn: ({ signal }) =>
      readAll(query => {
        const params = { path: { username }, query };
        return unwrap(windlass.api.GET('/api/users/{username}/tokens', { params, signal }));
      }),
  });

export const useEndToken = (username: string) =>
  useMutation({
    meta: { done: 'The token is ended.' },
    mutationFn: (id: string) =>
      unwrap(
        windlass.api.DELETE('/api/users/{username}/tokens/{id}', {
          params: { path: { username, id } },
        }),
      ),
    onSettled: () => queries.invalidateQueries({ queryKey: ['tokens', username] }),
  });

export interface AuditFilter {
  user?: string;
  action?: AuditAction;
  since: string;
}

/** Entries since a time, the newest first. */
export const useAudit = (filter: AuditFilter) =>
  useInfiniteQuery({
    queryKey: ['audit', filter],
    queryFn: ({ signal, pageParam }) => {
      const query = { ...filter, order: 'newest' as const, limit: AUDIT_PAGE, after: pageParam };
      return unwrap(windlass.api.GET('/api/audit', { params: { query }, signal }));
    },
    initialPageParam: 0,
    getNextPageParam: page => (page.next === null ? undefined : Number(page.next)),
    placeholderData: before => before,
  });
