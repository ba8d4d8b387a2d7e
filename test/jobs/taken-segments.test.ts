import { expect, test } from 'vitest';
import { newId } from '../../shared/ids.ts';
import { findFfmpegVersion, PICTURES_VERSION } from '../../workers/video/find-ffmpeg.ts';
import { takeSegment } from '../../workers/video/segments/segment-rows.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';

describeUnless(missingPrograms('ffmpeg'), 'segments that a helper takes', () => {
  const given = withDatabase('segments');

  /** A running video whose segment nobody encodes; its job. */
  async function offer(ffmpeg: string): Promise<string> {
    const { sql } = given.database();
    const [id, token] = [newId(), newId()];
    await sql`insert into jobs (id, kind, queue, session, owner, state, lease_token, payload, payload_version)
      values (${id}, 'video', 'video', 's', 'alice', 'running', ${token}, ${'{"fps":25}'}::text::jsonb, 4)`;
    await sql`insert into video_segments (id, job, attempt, start, until, sure, ffmpeg)
      values (${newId()}, ${id}, ${token}, 0, 100, 0, ${ffmpeg})`;
    return id;
  }
  const take = async (ffmpeg: string, except?: string[]) => {
    const options = { worker: newId(), ffmpeg, seconds: 1, except };
    return (await takeSegment(given.database().db, options))?.job;
  };

  test('are none of the videos that it failed at', async () => {
    const [failed, other] = [await offer('same'), await offer('same')];
    expect(await take('same', [failed])).toBe(other);
    expect(await take('same', [failed])).toBeUndefined();
    expect(await take('same')).toBe(failed);
  });

  test('are none of a release that makes other pictures', async () => {
    const job = await offer(await findFfmpegVersion(PICTURES_VERSION + 1));
    expect(await take(await findFfmpegVersion())).toBeUndefined();
    expect(await take(await findFfmpegVersion(PICTURES_VERSION + 1))).toBe(job);
  });
});
