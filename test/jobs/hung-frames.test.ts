import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

const SECONDS = 4;

/** A disk that hangs for what is read of these files alone. */
const HEAD = `#!/bin/sh
case "$*" in *hung*) exec sleep 600;; esac
exec /usr/bin/head "$@"
`;

describeStack(missingPrograms('sshd', 'ffmpeg'), 'frames on a disk that hangs', form => {
  const { client, sshd } = useRemoteStack(form, { env: { LIMIT_VIDEO_SECONDS: String(SECONDS) } });
  let sid: string;
  let good: string;
  let hung: string;

  beforeAll(async () => {
    const bin = join(sshd.home, 'bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'head'), HEAD, { mode: 0o755 });
    for (const file of ['.bashrc', '.zshenv'])
      writeFileSync(join(sshd.home, file), `export PATH=${bin}:$PATH\n`);
    const [drawn = ''] = await drawFrames({ folder: join(sshd.home, 'frames'), count: 1 });
    good = drawn;
    hung = join(sshd.home, 'frames', 'hung.png');
    copyFileSync(good, hung);
    sid = await openSession(client, sshd);
  });

  test.each([
    ['the first is looked at', () => ({ images: [hung, good] })],
    ['all are looked at while the host encodes', () => ({ images: [good, hung], encode: 'host' })],
    [
      'bad ones are looked for',
      () => ({ images: [good, hung], encode: 'worker', 'on-bad-frame': 'skip' }),
    ],
  ])('end the video by its limit where %s', async (_, options) => {
    const body = { 'content-type': 'video/mp4', ...options() };
    const { vsid } = await client.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, body);
    expect(await waitForEnd(client, vsid, SECONDS * 5_000)).toMatchObject({
      state: 'failed',
      error: { code: 'time_limit', hint: expect.stringContaining('LIMIT_VIDEO_SECONDS') },
    });
  });
});
