import { and, eq } from 'drizzle-orm';
import type { Request, Response, Router } from 'express';
import { z } from 'zod';
import { type JobRow, jobs } from '../../shared/database/schema.ts';
import { type ErrorRecord, WindlassError } from '../../shared/errors.ts';
import { isId } from '../../shared/ids.ts';
import { JOBS, type Result } from '../../shared/jobs/catalog.ts';
import type { ApiContext } from '../context.ts';
import { currentUser } from '../middleware/authenticate.ts';
import { entityTag, sendRecord } from '../records.ts';
import { pathParameter, resource } from '../resource.ts';
import { startRequestedJob } from '../run-request.ts';
import { sendObject } from '../send-object.ts';
import { findSession, touchSession, useSession } from '../sessions.ts';
import { parseBody } from '../validate.ts';

const { shape } = JOBS.video.payload;
const newVideo = z.strictObject({
  'content-type': z.unknown().optional(),
  images: z.unknown().optional(),
  fps: shape.fps.default(25),
  width: shape.width,
  quality: shape.quality,
  encode: shape.encode,
});

/** Videos made through a session with an agent: started, polled, fetched by range. A video session is its job. */
export function routeVideos(router: Router, api: ApiContext): void {
  resource(router, '/remotes/:sid/videos', {
    post: async (req, res) => {
      const sid = pathParameter(req, 'sid');
      const owner = currentUser(res).username;
      const key = { sid, owner, idleSeconds: api.config.SESSION_IDLE_TIMEOUT };
      const session = await findSession(api.database.db, key);
      requireAgent(session);
      const { 'content-type': type, images, ...options } = parseBody(req, newVideo);
      const payload = { ...options, type: readType(type), images: readImages(images) };
      const job = await startRequestedJob(api, req, res, async tx => {
        await useSession(tx, key);
        return { kind: 'video' as const, payload, session: sid };
      });
      await touchSession(api.database.db, session);
      res
        .status(202)
        .location(`/api/remotes/${sid}/videos/${job.id}/status`)
        .json({ sid: job.id, vsid: job.id, job: job.id });
    },
  });

  resource(router, '/remotes/:sid/videos/:vsid/status', {
    get: async (req, res) => {
      const row = await findVideo(api, req, res);
      sendRecord(req, res, { tag: entityTag(row.version), record: () => videoStatus(row) });
    },
  });

  resource(router, '/remotes/:sid/videos/:vsid', {
    get: async (req, res) => {
      const row = await findVideo(api, req, res);
      if (row.state !== 'succeeded') throw notReady(row);
      const { object, type } = row.result as Result<'video'>;
      await sendObject(api, req, res, { key: object, type });
    },
  });
}

/** The video of this session; polling counts as a use of the session. */
async function findVideo(api: ApiContext, req: Request, res: Response): Promise<JobRow> {
  const { db } = api.database;
  const session = await findSession(db, {
    sid: pathParameter(req, 'sid'),
    owner: currentUser(res).username,
    idleSeconds: api.config.SESSION_IDLE_TIMEOUT,
  });
  requireAgent(session);
  await touchSession(db, session);
  const vsid = pathParameter(req, 'vsid');
  const [row] = isId(vsid)
    ? await db
        .select()
        .from(jobs)
        .where(and(eq(jobs.id, vsid), eq(jobs.session, session.sid), eq(jobs.kind, 'video')))
    : [];
  if (!row)
    throw new WindlassError('not_found', {
      detail: 'Not found: this session has no such video.',
      hint: 'Start one with POST /api/remotes/(sid)/videos.',
    });
  return row;
}

function requireAgent({ agent }: { agent: boolean }): void {
  if (agent) return;
  throw new WindlassError('agent_required', {
    detail: 'Agent required. This session is not running a remote agent.',
    hint: 'Open a session with "agent": true on a host that is set up for one.',
  });
}

function readType(type: unknown): 'video/mp4' | 'video/webm' {
  if (type === undefined)
    throw new WindlassError('missing_content_type', {
      hint: 'Give "content-type": "video/mp4" or "video/webm".',
    });
  const parsed = shape.type.safeParse(type);
  if (parsed.success) return parsed.data;
  throw new WindlassError('unsupported_video_type', {
    detail: `Unsupported content-type: ${JSON.stringify(type).slice(0, 80)}.`,
    hint: 'Use "video/mp4" or "video/webm".',
  });
}

function readImages(images: unknown): string[] {
  if (images === undefined || (Array.isArray(images) && images.length === 0)) {
    throw new WindlassError('missing_images', {
      hint: 'Give "images": the absolute paths of the frames on the host, in order.',
    });
  }
  const parsed = shape.images.safeParse(images);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const field = ['images', ...(issue?.path ?? [])].join('.');
  throw new WindlassError('invalid_input', {
    detail: `Invalid parameters: ${field}: ${issue?.message}.`,
    hint: 'Give absolute paths on the host.',
    extra: { fields: [{ field, problem: issue?.message }] },
  });
}

/** Section 4.3 of the interface: `ok` and `message` always; `returncode` and `stderr` on failure alone, for debugging. */
function videoStatus(row: JobRow) {
  const error = row.error as (ErrorRecord & { returncode?: number; stderr?: string }) | null;
  const { returncode, stderr } = error ?? {};
  switch (row.state) {
    case 'queued':
      return { ok: true, ready: false, message: 'Waiting for a worker.', progress: 0 };
    case 'running':
      return {
        ok: true,
        ready: false,
        message: row.message ?? 'Creating the video.',
        progress: row.progress ?? 0,
      };
    case 'succeeded':
      return { ok: true, ready: true, message: 'Video is ready.', progress: 1 };
    default:
      return {
        ok: false,
        ready: false,
        message: error?.detail ?? 'Video creation failed.',
        ...(returncode === undefined ? {} : { returncode }),
        ...(stderr === undefined ? {} : { stderr }),
      };
  }
}

function notReady(row: JobRow): WindlassError {
  if (row.finished) {
    const { detail, hint } = row.error as ErrorRecord;
    return new WindlassError('conflict', {
      detail: `Conflict: there is no video. ${detail}`,
      hint: hint ?? 'Start another one.',
    });
  }
  return new WindlassError('video_not_ready', {
    detail: `Video is not ready: it is ${row.state}.`,
    hint: 'Poll its status until ready is true.',
    headers: { 'Retry-After': '1' },
  });
}
