import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

/** It makes videos, and none of their stills. */
const FFMPEG = `#!/bin/sh
case $* in *sprite*) echo no sprite >&2; exit 1 ;; esac
exec /usr/bin/ffmpeg "$@"
`;

describeStack(missingPrograms('sshd', 'ffmpeg'), 'an ffmpeg without stills', form => {
  const temp = makeTempDir('no-stills');
  afterAll(() => temp.remove());
  const bin = join(temp.path, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'ffmpeg'), FFMPEG, { mode: 0o755 });
  const { client, sshd } = useRemoteStack(form, { env: { PATH: `${bin}:${process.env.PATH}` } });

  test.each(['video/mp4', 'video/webm'])('makes %s in a worker', async type => {
    const sid = await openSession(client, sshd);
    const images = await drawFrames({ folder: join(sshd.home, 'frames'), count: 3 });
    const body = { 'content-type': type, images, encode: 'worker' };
    const { vsid } = await client.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, body);
    const job = await waitForEnd(client, vsid);
    expect(job).toMatchObject({ state: 'succeeded', result: { frames: 3, encoded: 'worker' } });
    expect(job.result).not.toHaveProperty('sprite');
  });
});
