import { useMutation } from '@tanstack/preact-query';
import { unwrap, type VideoOptions, WindlassError } from '@windlass/client';
import { AT_ONCE, queries, windlass } from './client.ts';
import { sendOnce } from './once.ts';

/** Asks for a video; the id of its job. */
export const useMakeVideo = (sid: string) =>
  useMutation({
    mutationFn: async (video: VideoOptions) =>
      sendOnce(
        { sid, video },
        async idempotencyKey =>
          (await windlass.session(sid).video({ ...video, idempotencyKey })).job,
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['jobs'] }),
  });

const ONE_BYTE = {
  Range: 'bytes=0-0',
  // Such a request is never sent on to the object store, from which the page may read nothing.
  'If-Match': '*',
};

export interface CacheLocation {
  project: string;
  key: string;
}

export type Loss = 'gone' | 'logged out' | 'unreachable';

/** Why the bytes of a video do not come; undefined where they do. */
export async function findLoss(address: string): Promise<Loss | undefined> {
  // Without the second the browser itself asks for a password where the login has ended.
  const headers = { ...ONE_BYTE, 'X-Requested-With': 'windlass' };
  const answer = await fetch(address, { headers }).catch(() => undefined);
  await answer?.body?.cancel();
  if (answer?.status === 404) return 'gone';
  if (answer?.ok) return undefined;
  if (answer?.status !== 401) return 'unreachable';
  await queries.invalidateQueries({ queryKey: ['user'] });
  return 'logged out';
}

/** Whether there is a video at that location. */
export async function isKept({ project: pid, key }: CacheLocation): Promise<boolean> {
  const params = { path: { pid, key }, header: ONE_BYTE };
  try {
    await unwrap(
      windlass.api.GET('/api/projects/{pid}/cache/{key}', { params, parseAs: 'blob', ...AT_ONCE }),
    );
    return true;
  } catch (error) {
    if (error instanceof WindlassError && error.status === 404) return false;
    throw error;
  }
}

/** Keeps a video in the cache of a project. */
export const useCacheVideo = (sid: string, vsid: string) =>
  useMutation({
    mutationFn: async (location: CacheLocation) => {
      const asking = windlass.api.GET('/api/remotes/{sid}/videos/{vsid}', {
        params: {
          path: { sid, vsid },
          query: { cache: 'project', ...location },
          // It is kept before the first byte is sent: no more of them is needed.
          header: ONE_BYTE,
        },
        parseAs: 'blob',
      });
      await unwrap(asking);
      return location;
    },
  });
