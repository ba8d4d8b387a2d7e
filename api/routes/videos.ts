import { z } from 'zod';
import { conflict, type ErrorCode, notFound, WindlassError } from '../../shared/errors/errors.ts';
import { isId } from '../../shared/ids.ts';
import type { Result } from '../../shared/jobs/catalog.ts';
import type { JobSummary } from '../../shared/jobs/job-record.ts';
import { assertCacheRoom } from '../../shared/projects/cache-entry.ts';
import { assertUserStorage } from '../../shared/quotas/user-storage.ts';
import { downloadQuery } from '../http/attachment.ts';
import { sendRecord } from '../http/conditional-requests.ts';
import type { Exchange } from '../http/exchange.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { sendObject, sendVideo } from '../http/send-object.ts';
import { currentUser } from '../identity/current-user.ts';
import { findVideo, requireAgent } from '../jobs/queries/find-video.ts';
import { pollVideos } from '../jobs/queries/poll-videos.ts';
import { jobTag } from '../jobs/records/job-tag.ts';
import { writeCues } from '../jobs/records/sprite-cues.ts';
import {
  failureOf,
  type PolledVideo,
  statusRecord,
  videoStatus,
} from '../jobs/records/video-status.ts';
import { newVideo, readVideo } from '../jobs/requests/new-video.ts';
import { awaitChange } from '../jobs/requests/prefer.ts';
import { unlessRepeated } from '../jobs/requests/repeats-earlier-request.ts';
import { startRequestedJob } from '../jobs/requests/start-requested-job.ts';
import {
  answerWithLocation,
  type Operation,
  operation,
  rangeAnswers,
  videoAnswers,
} from '../openapi/operation.ts';
import { findProject, lockProjectForShare, needRole } from '../projects/access.ts';
import { cacheVideo, parseCacheLocation, parseCacheQuery } from '../projects/cache-video.ts';
import { findSession, lockSession, sessionKey, touchSession } from '../remote/sessions.ts';

/** Not strict: video players add parameters of their own. */
const videoQuery = z.object({
  cache: z.string().optional().describe('`project` stores the video in a project cache.'),
  project: z.string().optional(),
  key: z.string().optional(),
  ...downloadQuery,
});
const started = z
  .object({ sid: z.string(), vsid: z.string(), job: z.string() })
  .meta({ id: 'StartedVideo' });
const FIND_STILLS_ERRORS: ErrorCode[] = [
  'session_not_found',
  'host_changed',
  'not_found',
  'agent_required',
];
/** What the operations for a poster and a sprite share. */
const PICTURE = {
  topic: 'videos',
  headers: ['Range', 'If-Range', 'If-None-Match', 'If-Match'],
  answers: rangeAnswers(['image/jpeg'], 'The picture.'),
  errors: [...FIND_STILLS_ERRORS, 'range_not_satisfiable'],
} satisfies Partial<Operation>;

/** Videos of frames on a session's host. A video session is its job. */
export default routes('json-body', (router, api) => {
  const findState = pollVideos(api.database, api.config.SESSION_IDLE_TIMEOUT);

  async function awaitVideo({ req, res }: Exchange): Promise<PolledVideo> {
    const row = await findVideo(api, { req, res });
    const changed = await awaitChange(api, { req, res, row, tag: jobTag(row) });
    // The session may have ended meanwhile.
    return changed === row ? row : findVideo(api, { req, res });
  }

  /** findVideo(), optimized for polls and for players, which ask for one range after the other. */
  async function lookUpVideo({ req, res }: Exchange): Promise<PolledVideo> {
    const [sid, vsid] = [pathParameter(req, 'sid'), pathParameter(req, 'vsid')];
    const owner = currentUser(res).username;
    const known = isId(sid) && isId(vsid) ? await findState({ sid, vsid, owner }) : undefined;
    // findVideo() throws the errors, and updates the session's last use.
    if (!known?.session?.agent || known.session.due || !known.video)
      return findVideo(api, { req, res });
    return known.video;
  }

  resource(router, '/remotes/:sid/videos', {
    post: operation({
      id: 'makeVideo',
      topic: 'videos',
      summary: 'Start making a video of frames on the host',
      body: newVideo,
      headers: ['Idempotency-Key'],
      answers: {
        202: answerWithLocation(
          'Started; `sid` is the id of the video session, as `vsid` is.',
          'The status of the video.',
          started,
        ),
      },
      errors: [
        'session_not_found',
        'host_changed',
        'agent_required',
        'missing_content_type',
        'missing_images',
        'unsupported_video_type',
        'missing_project',
        'missing_cache_key',
        'not_found',
        'forbidden',
        'idempotency_conflict',
        'insufficient_storage',
      ],
      handle: async ({ req, res, body }) => {
        const sid = pathParameter(req, 'sid');
        const key = sessionKey(api, res, sid);
        const session = await unlessRepeated(api, { req, res }, async () => {
          const found = await findSession(api.database.db, key);
          requireAgent(found);
          return found;
        });
        const { project, key: cacheKey, name, ...video } = body();
        const cache =
          project === undefined && cacheKey === undefined
            ? undefined
            : parseCacheLocation({ project, key: cacheKey }, api.config.LIMIT_KEY_LENGTH);
        const payload = { ...readVideo(video), cache };
        const need = needRole(res, 'writer');
        if (cache)
          await unlessRepeated(api, { req, res }, () =>
            findProject(api.database.db, cache.project, need),
          );
        const job = await startRequestedJob(api, { req, res }, async tx => {
          await lockSession(tx, key);
          if (cache) await lockProjectForShare(tx, cache.project, need);
          // Nobody waits for a video that cannot be stored.
          const limit = api.config.LIMIT_USER_BYTES;
          await assertUserStorage(tx, { user: currentUser(res).username, added: 1, limit });
          if (cache) await assertCacheRoom(tx, cache, api.config);
          return { kind: 'video', payload, session: sid, project: cache?.project, name };
        });
        if (session) await touchSession(api, session);
        res
          .status(202)
          .location(`/api/remotes/${sid}/videos/${job.id}/status`)
          .json({ sid: job.id, vsid: job.id, job: job.id });
      },
    }),
  });

  resource(router, '/remotes/:sid/videos/:vsid/status', {
    get: operation({
      id: 'getVideoStatus',
      topic: 'videos',
      summary: 'Look how a video is getting on, or wait until that has changed',
      headers: ['If-None-Match', 'Prefer'],
      answers: { 200: { means: 'Its status.', json: statusRecord }, 304: 'Unchanged.' },
      errors: ['session_not_found', 'host_changed', 'not_found', 'agent_required'],
      handle: async ({ req, res }) => {
        const waits = req.headers.prefer !== undefined;
        const row = await (waits ? awaitVideo({ req, res }) : lookUpVideo({ req, res }));
        sendRecord({ req, res }, { tag: jobTag(row), record: () => videoStatus(row) });
      },
    }),
  });

  resource(router, '/remotes/:sid/videos/:vsid', {
    get: operation({
      id: 'fetchVideo',
      topic: 'videos',
      summary: 'Retrieve a video',
      details:
        "With `cache=project`, `project` and `key` it is stored in that project's cache too, before the first byte is sent.",
      query: videoQuery,
      headers: ['Range', 'If-Range', 'If-None-Match', 'If-Match'],
      answers: videoAnswers('The whole video.'),
      errors: [
        'session_not_found',
        'host_changed',
        'not_found',
        'forbidden',
        'agent_required',
        'video_not_ready',
        'conflict',
        'range_not_satisfiable',
        'unknown_cache_type',
        'missing_project',
        'missing_cache_key',
        'insufficient_storage',
      ],
      handle: async ({ req, res, query }) => {
        const seen = await lookUpVideo({ req, res });
        const { cache, download, ...place } = query();
        const longest = api.config.LIMIT_KEY_LENGTH;
        const wanted = cache === undefined ? undefined : parseCacheQuery(cache, place, longest);
        // It may be ready since.
        const { result } =
          seen.state === 'succeeded' ? seen : requireVideo(await findVideo(api, { req, res }));
        const { object, type } = result as Result<'video'>;
        // HEAD is safe (RFC 9110, 9.2.1): it caches nothing.
        if (wanted && req.method === 'GET')
          await cacheVideo(api, { req, res }, { id: pathParameter(req, 'vsid'), result }, wanted);
        await sendVideo(api, { req, res }, { key: object, type, download });
      },
    }),
  });

  resource(router, '/remotes/:sid/videos/:vsid/poster', {
    get: operation({
      ...PICTURE,
      id: 'fetchVideoPoster',
      summary: 'Retrieve the first picture of a video',
      handle: async ({ req, res }) => {
        const { poster } = await findStills({ req, res });
        await sendObject(api, { req, res }, { key: poster, type: 'image/jpeg' });
      },
    }),
  });

  resource(router, '/remotes/:sid/videos/:vsid/sprite', {
    get: operation({
      ...PICTURE,
      id: 'fetchVideoSprite',
      summary: 'Retrieve small pictures of a video, side by side',
      handle: async ({ req, res }) => {
        const { sprite } = await findStills({ req, res });
        await sendObject(api, { req, res }, { key: sprite, type: 'image/jpeg' });
      },
    }),
  });

  resource(router, '/remotes/:sid/videos/:vsid/sprite.vtt', {
    get: operation({
      id: 'fetchVideoSpriteCues',
      topic: 'videos',
      summary: 'Retrieve when each of the small pictures is shown, as WebVTT',
      details: 'Its cues are `sprite#xywh=…`: where a picture lies in the sprite beside it.',
      answers: { 200: { means: 'The cues.', types: ['text/vtt'] } },
      errors: FIND_STILLS_ERRORS,
      handle: async ({ req, res }) => {
        const { tiles } = await findStills({ req, res });
        res.type('text/vtt').send(writeCues(tiles));
      },
    }),
  });

  /** Objects of a video that is ready. */
  async function findStills({ req, res }: Exchange) {
    const row = await findVideo(api, { req, res });
    const { poster, sprite, tiles } = (row.result ?? {}) as Partial<Result<'video'>>;
    if (row.state === 'succeeded' && poster && sprite && tiles) return { poster, sprite, tiles };
    const isReady = row.state === 'succeeded';
    throw notFound(
      isReady ? 'this video has no stills.' : 'the video is not ready.',
      isReady
        ? 'Install a newer ffmpeg where the video workers run.'
        : 'Poll its status until ready is true.',
    );
  }
});

/** The row of a video that is ready. Throws `video_not_ready`, and `conflict` where there is none. */
function requireVideo(row: JobSummary): JobSummary {
  if (row.state !== 'succeeded') throw notReady(row);
  return row;
}

function notReady(row: JobSummary): WindlassError {
  if (row.finished) {
    return conflict(
      `there is no video: ${failureOf(row)}`,
      row.error?.hint ?? 'Start another one.',
    );
  }
  return new WindlassError('video_not_ready', {
    detail: `it is ${row.state}.`,
    hint: 'Poll its status until ready is true.',
    headers: { 'Retry-After': '1' },
  });
}
