import { batchLookups } from '../../../shared/database/batch-lookups.ts';
import type { Database } from '../../../shared/database/connect.ts';
import type { StoredError } from '../../../shared/errors/errors.ts';
import type { JobState } from '../../../shared/jobs/job-states.ts';

interface VideoKey {
  sid: string;
  vsid: string;
  owner: string;
}

/** What a poll answers with; null where there is no such session, or no such video in it. */
interface VideoState {
  /** Null also where the session was used so long ago that only its jobs tell whether it is open. */
  session: { agent: boolean; due: boolean } | null;
  video: {
    state: JobState;
    message: string | null;
    progress: number | null;
    error: StoredError | null;
    result: unknown;
    version: string;
  } | null;
}

/**
 * Looks up polled videos in batches, each by two primary keys. `limit 1` keeps the planner from joining the tables,
 * which would scan them while they are small. Written by hand as the most frequent query: drizzle takes 50 µs for a
 * row.
 */
export function pollVideos({ sql }: Database, idleSeconds: number) {
  return batchLookups(async (keys: VideoKey[]): Promise<VideoState[]> => {
    const rows = await sql`
        select agent, due, state, message, progress, error, result, version
        from rows from (json_to_recordset(${JSON.stringify(keys)}::json) as (sid text, vsid text, owner text))
        with ordinality as wanted(sid, vsid, owner, place)
        left join lateral (
          select agent, accessed < now() - interval '1 minute' as due
          from sessions
          where sessions.sid = wanted.sid and sessions.owner = wanted.owner and opened is not null and ended is null
            and accessed > now() - make_interval(secs => ${idleSeconds})
          limit 1
        ) session on true
        left join lateral (
          select state, message, progress, error, result, version::text
          from jobs
          where jobs.id = wanted.vsid and jobs.session = wanted.sid and jobs.kind = 'video'
          limit 1
        ) video on true
        order by place`;
    return rows.map(({ agent, due, ...video }) => ({
      session: agent === null ? null : { agent, due },
      video: video.state === null ? null : (video as VideoState['video']),
    }));
  });
}
