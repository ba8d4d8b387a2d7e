import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ssh2 from 'ssh2';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { placesOf } from '../../test/harness/files/draw-frames.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { startTestSshd, type TestSshd } from '../../test/harness/hosts/sshd.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import { RemoteSession } from '../ssh/remote-session.ts';
import { FRAME_STREAM_COMMAND, frameStreamScript, openFrameStream } from './frame-stream.ts';
import { readFrames } from './read-frames.ts';

const FRAME_BYTES = 5_000_000;

describeUnless(missingPrograms('sshd'), 'frames over an SSH connection', () => {
  const temp = makeTempDir('transfer-ssh');
  const path = join(temp.path, 'frame');
  const frames = placesOf(Array.from({ length: 20 }, () => path));
  const client = new ssh2.Client();
  let sshd: TestSshd;
  let session: RemoteSession;

  beforeAll(async () => {
    writeFileSync(path, Buffer.alloc(FRAME_BYTES, 7));
    sshd = await startTestSshd();
    const { host, port, username, privateKey } = sshd;
    await new Promise<void>((resolve, reject) => {
      client.once('ready', resolve).once('error', reject);
      client.connect({ host, port, username, privateKey });
    });
    session = new RemoteSession({ client, banner: '' }, { spoolLimitBytes: 1, shell: undefined });
  });

  afterAll(async () => {
    session?.close();
    await sshd?.stop();
    temp.remove();
  });

  async function open(signal?: AbortSignal) {
    const channel = await session.exec(FRAME_STREAM_COMMAND);
    channel.stdin.end(frameStreamScript({ frames }));
    return { channel, frames: readFrames(channel.stdout, { frames, signal }) };
  }

  it('are exact, and their channel closes after the last one', async () => {
    const { channel, frames } = await open();
    let count = 0;
    for await (const frame of frames) {
      expect(frame).toMatchObject({ index: count++, size: FRAME_BYTES });
    }
    expect(count).toBe(20);
    await channel.closed;
  });

  it('close their channel when the reader stops early', async () => {
    const { channel, frames } = await open();
    for await (const frame of frames) if (frame.index === 2) break;
    await channel.closed;
  });

  it('close their channel when aborted while the reader waits or works', async () => {
    for (const wait of [true, false]) {
      const abort = new AbortController();
      const { channel, frames } = await open(abort.signal);
      await frames.next();
      const next = wait ? frames.next() : undefined;
      abort.abort(new Error('enough'));
      await expect(next ?? frames.next()).rejects.toThrow('enough');
      await channel.closed;
    }
  });

  it('stop at once when aborted, although the host is silent', async () => {
    const abort = new AbortController();
    const channel = await session.exec('cat');
    const next = readFrames(channel.stdout, { frames, signal: abort.signal }).next();
    abort.abort(new Error('enough'));
    await expect(next).rejects.toThrow('enough');
    await channel.closed;
  });

  it('take no memory for what the host writes to standard error beside them', async () => {
    const script = `i=0
while [ $i -lt 40 ]; do head -c 1000000 /dev/zero >&2; head -c 100000 /dev/zero; i=$((i + 1)); done
`;
    const stdout = await openFrameStream(session, script, new AbortController().signal);
    const { stderr } = stdout as ssh2.ClientChannel;
    let most = 0;
    let bytes = 0;
    for await (const piece of stdout) {
      bytes += (piece as Buffer).length;
      most = Math.max(most, stderr.readableLength);
    }
    expect(bytes).toBe(4_000_000);
    expect(most).toBeLessThan(4 << 20);
  });

  it('fail when the connection is lost', async () => {
    const { frames } = await open();
    await frames.next();
    client.destroy();
    const read = async () => {
      for await (const _ of frames);
    };
    await expect(read()).rejects.toMatchObject({ code: 'remote_connection_failed' });
  });
});
