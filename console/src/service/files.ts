import { useMutation, useQuery } from '@tanstack/preact-query';
import { escapePath, type ReadOptions, unwrap, WindlassError } from '@windlass/client';
import { queries, windlass } from './client.ts';
import { apiPath } from './place.ts';

/**
 * A directory on the host of a session; nothing is asked for without a path. Commands write there at any time: it is asked
 * for again whenever it is shown anew.
 */
export const useListing = (sid: string, path: string | undefined) =>
  useQuery({
    queryKey: ['listing', sid, path],
    queryFn: async ({ signal }) => {
      try {
        return await windlass.session(sid).browse(path ?? '/', { signal });
      } catch (error) {
        if (hasEnded(error)) void queries.invalidateQueries({ queryKey: ['sessions'] });
        throw error;
      }
    },
    staleTime: 0,
    enabled: path !== undefined,
  });

/** Visible ones are requested again now, the others when they are shown. */
export const refreshListings = (sid: string) =>
  queries.invalidateQueries({ queryKey: ['listing', sid] });

/** Times that hosts tell may be of whole seconds: what a file holds may be another with the same size and time. */
export const lookAgain = (sid: string) =>
  Promise.all([
    refreshListings(sid),
    ...['file', 'parquet'].map(kind => queries.invalidateQueries({ queryKey: [kind, sid] })),
  ]);

const hasEnded = (error: unknown) =>
  error instanceof WindlassError && ['session_not_found', 'host_changed'].includes(error.code);

/** The account's home, as the login on the host told it; null where its job is no longer kept. */
export const useHome = (sid: string) =>
  useQuery({
    queryKey: ['home', sid],
    queryFn: async ({ signal }) => {
      const query = { session: sid, kind: ['connect' as const, 'answer' as const], limit: 10 };
      const asking = windlass.api.GET('/api/jobs', { params: { query }, signal });
      const homes = (await unwrap(asking)).items.map(job =>
        'result' in job ? job.result?.home : undefined,
      );
      return homes.find(home => home !== undefined) ?? null;
    },
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Removes a file on the host of a session; a link itself, not the file that it names. */
export const useRemoveFile = (sid: string) =>
  useMutation({
    meta: { done: 'The file is deleted.' },
    mutationFn: (path: string) => {
      const params = { path: { sid, path } };
      return unwrap(windlass.api.DELETE('/api/remotes/{sid}/file/{path}', { params }));
    },
    onSettled: () => refreshListings(sid),
  });

/** Where a link downloads a file of a host from. */
export const fileAddress = (sid: string, path: string) =>
  apiPath(`remotes/${encodeURIComponent(sid)}/file${escapePath(path)}`);

/** Bytes of a file on a host. */
export async function readFile(sid: string, path: string, options: ReadOptions): Promise<Blob> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for await (const bytes of windlass.session(sid).readFile(path, options))
    pieces.push(bytes as Uint8Array<ArrayBuffer>);
  return new Blob(pieces);
}

/** The first bytes of a file on a host. */
export const useHead = (
  sid: string,
  path: string,
  { most, isWanted, version }: { most: number; isWanted: boolean; version: string },
) =>
  useQuery({
    queryKey: ['file', sid, path, most, version],
    queryFn: async ({ signal }) => {
      const head = await readFile(sid, path, { length: most, signal });
      return new Uint8Array(await head.arrayBuffer());
    },
    staleTime: 60_000,
    gcTime: 60_000,
    enabled: isWanted,
  });
