import { useMutation } from '@tanstack/preact-query';
import { unwrap, type VideoOptions } from '@windlass/client';
import { queries, windlass } from './client.ts';
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

export interface CachePlace {
  project: string;
  key: string;
}

/** Keeps a video in the cache of a project. */
export const useCacheVideo = (sid: string, vsid: string) =>
  useMutation({
    mutationFn: async (place: CachePlace) => {
      const asking = windlass.api.GET('/api/remotes/{sid}/videos/{vsid}', {
        params: {
          path: { sid, vsid },
          query: { cache: 'project', ...place },
          // It is kept before the first byte is sent: no more of them is needed.
          header: {
            Range: 'bytes=0-0',
            // Such a request is never sent on to the object store, from which the page may read nothing.
            'If-Match': '*',
          },
        },
        parseAs: 'blob',
      });
      await unwrap(asking);
      return place;
    },
  });
