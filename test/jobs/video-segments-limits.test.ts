import { expect, test } from 'vitest';
import { useSegmentedVideos } from '../harness/files/segmented-videos.ts';
import { waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';

/** Beside other tests, the help of another worker takes some. */
const SECONDS = 15;

interface Times {
  started: string;
  finished: string;
}

describeStack(missingPrograms('sshd', 'ffmpeg'), 'limits of a video of several workers', form => {
  const stage = useSegmentedVideos(form, {
    LIMIT_VIDEO_SECONDS: String(SECONDS),
    LIMIT_BODY_BYTES: String(4 << 20),
  });

  test('its time is that of the whole, and what helpers made goes', async () => {
    const images = Array.from({ length: 32 }, () => stage.frames).flat();
    const id = await stage.start({ images });
    await stage.helperOf(id);
    const job = await waitForEnd(stage.client, id, 60_000);
    expect(job).toMatchObject({ state: 'failed', error: { code: 'time_limit' } });
    const { started, finished } = await stage.client.get<Times>(`/api/jobs/${id}`);
    const took = Date.parse(finished) - Date.parse(started);
    expect(took).toBeGreaterThanOrEqual(SECONDS * 1_000);
    expect(took).toBeLessThan(SECONDS * 1_500);
    await stage.expectNothingLeft(id, 0);
  });
});
