import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { drawFrame } from '../harness/files/draw-frames.ts';
import { linkFrames, useSegmentedVideos } from '../harness/files/segmented-videos.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeForms } from '../harness/stacks/forms.ts';

describeForms(missingPrograms('sshd', 'ffmpeg'), 'segments of videos', form => {
  const stage = useSegmentedVideos(form);

  test('frames of a pattern, of several kinds, of which some are left out', async () => {
    const pattern = join(stage.sshd.home, 'pattern', '%d.jpg');
    linkFrames(stage.frames, pattern);
    for (const n of [700, 1_400]) {
      rmSync(pattern.replace('%d', String(n)));
      writeFileSync(pattern.replace('%d', String(n)), 'this is no picture');
    }
    for (const n of [600, 1_300]) {
      rmSync(pattern.replace('%d', String(n)));
      const png = await drawFrame({ width: 640, height: 360, kind: 'png' });
      writeFileSync(pattern.replace('%d', String(n)), png);
    }
    const id = await stage.start({ pattern, 'on-bad-frame': 'skip', label: 'name' });
    await stage.helperOf(id);
    await stage.expectWhole(id, 1_498);
    expect((await stage.jobOf(id)).result).toMatchObject({
      skipped: [{ index: 700 }, { index: 1_400 }],
      skippedCount: 2,
    });
  });
});
