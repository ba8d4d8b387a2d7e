import { createHash, randomBytes } from 'node:crypto';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  type Challenge,
  WindlassError,
  type WriteOptions,
} from '../../clients/typescript/src/index.ts';
import { connectWindlass, gather, useLink } from '../harness/clients/windlass-client.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { startCodeHost } from '../harness/hosts/pam-sshd.ts';
import { addHost, type Job } from '../harness/hosts/remote.ts';
import { startSlurm } from '../harness/hosts/slurm.ts';
import { missingPrograms, missingRoot } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import {
  useProxiedStack,
  useRemoteStack,
  useStack,
  useStarted,
} from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const digestOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('base64');

const codes = missingRoot() ?? missingPrograms('sshd', 'google-authenticator');
describeStack(codes, '@windlass/client and one-time codes', form => {
  const { stack, client } = useStack(form);

  test('what a host asks is answered by a callback, and an unanswered login is ended', async () => {
    const host = await startCodeHost({ asksPassword: true });
    try {
      const hostname = await addHost(client, host.sshd, { name: 'codes' });
      const { username, password } = host.account;
      const windlass = connectWindlass(stack);
      const asked: Challenge[] = [];
      const session = await windlass.open(hostname, {
        username,
        password,
        answer: challenge => {
          asked.push(challenge);
          return [host.nextCode()];
        },
      });
      expect(asked.map(({ prompts }) => prompts)).toEqual([
        [{ text: 'Verification code: ', echo: false }],
      ]);
      expect((await session.run('echo in').wait()).output).toBe('in\n');
      await session.close();
      await session.close();
      const unanswered = windlass.open(hostname, { username, password });
      await expect(unanswered).rejects.toMatchObject({
        name: 'WindlassError',
        code: 'answer_required',
        detail: expect.stringContaining('Verification code:'),
      });
      await waitFor(
        async () => (await client.get<{ items: [] }>('/api/remotes')).items.length === 0,
        { what: 'the unanswered session to end' },
      );
    } finally {
      await host.stop();
    }
  });
});

describeStack(missingPrograms('sshd'), '@windlass/client and logins', form => {
  const { stack, client, sshd, proxy } = useProxiedStack(form);
  const link = useLink(stack);

  test('a login whose connection is lost is begun anew, as it was cancelled with that', async () => {
    const windlass = connectWindlass(stack, link.port);
    const { username, privateKey } = sshd;
    const logins = async (state: string) => {
      const { items } = await client.get<{ items: Job[] }>(
        `/api/jobs?name=cut-login&state=${state}`,
      );
      return items.length;
    };
    proxy.blackhole();
    const opening = windlass.open('host', { username, privateKey, name: 'cut-login' });
    await waitFor(async () => (await logins('running')) === 1, { what: 'the login to begin' });
    link.cut();
    await waitFor(async () => (await logins('cancelled')) === 1, { what: 'its end' });
    proxy.heal();
    const session = await opening;
    expect((await session.run('echo in').wait()).output).toBe('in\n');
    expect(await logins('succeeded')).toBe(1);
  });

  test('a login whose answer is lost has made one session', async () => {
    const windlass = connectWindlass(stack, link.port);
    const { username, privateKey } = sshd;
    const before = await client.get<{ items: [] }>('/api/remotes');
    link.cutAfter('down', 1);
    const session = await windlass.open('host', { username, privateKey });
    const { items } = await client.get<{ items: { sid: string }[] }>('/api/remotes');
    expect(items).toHaveLength(before.items.length + 1);
    expect(items.map(({ sid }) => sid)).toContain(session.sid);
    const wrong = windlass.open('host', { username, password: 'wrong' });
    await expect(wrong).rejects.toMatchObject({
      status: 403,
      code: 'remote_authentication_failed',
    });
  });
});

describeStack(missingPrograms('sshd'), '@windlass/client and files of a host', form => {
  const { stack, sshd } = useRemoteStack(form);
  const link = useLink(stack);
  const cutAfterMore = async (bytes: number) => {
    const from = link.bytes.up;
    link.cutAfter('up', bytes);
    await waitFor(() => link.bytes.up >= from + bytes, { what: 'a cut' });
  };

  test('a file is written and read whole, over connections that are cut', async () => {
    const windlass = connectWindlass(stack, link.port);
    const { username, privateKey } = sshd;
    const session = await windlass.open('host', { username, privateKey });
    const bytes = randomBytes(6 << 20);
    const path = join(sshd.home, 'a folder', 'ä.bin');
    link.cutAfter('up', 2 << 20);
    const written = await session.writeFile(path, bytes, { parents: true, mode: 0o640 });
    expect(written).toMatchObject({ path, size: bytes.length });
    expect(readFileSync(path).equals(bytes)).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o640);
    const { total } = link.connections;
    link.cutAfter('down', 2 << 20);
    expect(Buffer.concat(await gather(session.readFile(path))).equals(bytes)).toBe(true);
    expect(link.connections.total).toBeGreaterThan(total);
    const part = { start: 5, length: 1_000 };
    expect(Buffer.concat(await gather(session.readFile(path, part)))).toEqual(
      bytes.subarray(5, 1_005),
    );
    const again = session.writeFile(path, 'text', { exclusive: true });
    await expect(again).rejects.toMatchObject({ status: 412, code: 'precondition_failed' });
  });

  test('pieces of a file that has a name are gone on with, and others go with who gives up', async () => {
    const { username, privateKey } = sshd;
    const { sid } = await connectWindlass(stack).open('host', { username, privateKey });
    const session = connectWindlass(stack, link.port).session(sid);
    const bytes = randomBytes(24 << 20);
    const folder = join(sshd.home, 'in pieces');
    mkdirSync(folder);
    const path = join(folder, 'file');
    const left = () => readdirSync(folder).filter(name => name.startsWith('.windlass-'));
    const pieces = () =>
      left()
        .flatMap(name => readdirSync(join(folder, name)))
        .filter(name => /^\d+-\d+$/.test(name)).length;
    /** Begins to write over a slow link, and gives up when a piece is there. */
    const giveUp = async (options: WriteOptions, cuts: number) => {
      link.throttle('up', 12 << 20);
      const stop = new AbortController();
      const written = session.writeFile(path, bytes, { ...options, signal: stop.signal });
      written.catch(() => {});
      for (let n = 0; n < cuts; n++) await cutAfterMore(3 << 20);
      await waitFor(() => pieces() > 0, { what: 'a piece', intervalMs: 5 });
      stop.abort(new Error('given up'));
      await expect(written).rejects.toThrow('given up');
      link.throttle('up', Infinity);
    };
    await giveUp({}, 2);
    await waitFor(() => left().length === 0, { what: 'the end of the pieces' });
    const resume = { what: 'name', state: 'first' };
    await giveUp({ resume }, 0);
    expect(pieces()).toBeGreaterThan(0);
    const before = link.bytes.up;
    const written = await session.writeFile(path, bytes, { resume, mode: 0o640 });
    expect(link.bytes.up - before).toBeLessThan(17 << 20);
    expect(written).toEqual({ path, size: bytes.length, digest: digestOf(bytes) });
    expect(readFileSync(path).equals(bytes)).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o640);
    expect(left()).toEqual([]);
    const nowhere = join(folder, 'none', 'file');
    await expect(session.writeFile(nowhere, bytes, { resume })).rejects.toMatchObject({
      code: 'not_found',
      detail: `${nowhere} cannot be written: its folder is missing.`,
    });
  });

  test('a large file goes as one where no folder is private, as on shares that keep no modes', async () => {
    const programs = join(sshd.home, 'programs');
    const folder = join(sshd.home, 'share');
    for (const path of [programs, folder]) mkdirSync(path);
    writeFileSync(join(programs, 'ls'), '#!/bin/sh\necho "drwxrwxrwx 2 0 0 ."\n', { mode: 0o755 });
    const { username, privateKey } = sshd;
    const env = { PATH: `${programs}:${process.env.PATH}` };
    const session = await connectWindlass(stack).open('host', { username, privateKey, env });
    const bytes = randomBytes((8 << 20) + 1);
    const path = join(folder, 'file');
    const resume = { what: 'name', state: 'first' };
    const written = await session.writeFile(path, bytes, { resume });
    expect(written).toEqual({ path, size: bytes.length, digest: digestOf(bytes) });
    expect(readFileSync(path).equals(bytes)).toBe(true);
    expect(readdirSync(folder)).toEqual(['file']);
    // Where its link is cut, too.
    link.throttle('up', 12 << 20);
    const changed = randomBytes(bytes.length);
    const again = connectWindlass(stack, link.port).session(session.sid).writeFile(path, changed);
    again.catch(() => {});
    for (let n = 0; n < 2; n++) await cutAfterMore(3 << 20);
    expect((await again).digest).toBe(digestOf(changed));
    link.throttle('up', Infinity);
    expect(readFileSync(path).equals(changed)).toBe(true);
    expect(readdirSync(folder)).toEqual(['file']);
  });

  test('a path stays what it is on the host: a URL would be rid of its dots', async () => {
    const windlass = connectWindlass(stack, link.port);
    const { username, privateKey } = sshd;
    const session = await windlass.open('host', { username, privateKey });
    mkdirSync(join(sshd.home, 'real', 'inner'), { recursive: true });
    symlinkSync(join(sshd.home, 'real', 'inner'), join(sshd.home, 'linked'));
    writeFileSync(join(sshd.home, 'real', 'beside'), 'of the real folder');
    const above = `${sshd.home}/linked/..`;
    link.cutAfter('down', 1);
    const { names, path } = await session.browse(above);
    expect([path, names.sort()]).toEqual([above, ['beside', 'inner']]);
    const read = await gather(session.readFile(`${above}/beside`));
    expect(Buffer.concat(read).toString()).toBe('of the real folder');
  });

  test('a relative path is in the home, as a command reads it', async () => {
    const { username, privateKey, home } = sshd;
    const session = await connectWindlass(stack).open('host', { username, privateKey });
    const written = await session.writeFile('./study/notes.txt', 'text', { parents: true });
    expect(written.path).toBe(`${home}/./study/notes.txt`);
    expect(readFileSync(join(home, 'study/notes.txt'), 'utf8')).toBe('text');
    for (const path of ['study/notes.txt', '~/study/notes.txt', './study/notes.txt'])
      expect(Buffer.concat(await gather(session.readFile(path))).toString()).toBe('text');
    for (const path of ['study', '~//study', './study'])
      expect((await session.browse(path)).names).toEqual(['notes.txt']);
    expect(await session.browse('~')).toMatchObject({
      path: home,
      names: expect.arrayContaining(['study']),
    });
    for (const path of ['', '~nobody/study'])
      await expect(session.browse(path)).rejects.toMatchObject({ code: 'invalid_input' });
    expect((await session.writeFile('./~own', 'text')).path).toBe(`${home}/./~own`);
  });

  test('where the account has no home, a relative path is refused in words of its own', async () => {
    const { username, privateKey, home } = sshd;
    const windlass = connectWindlass(stack);
    const session = await windlass.open('host', {
      username,
      privateKey,
      env: { HOME: '/nowhere' },
    });
    await expect(session.browse('study')).rejects.toMatchObject({
      code: 'not_found',
      hint: 'Give an absolute path.',
    });
    expect(await session.browse(home)).toMatchObject({ path: home });
  });
});

describeStack(missingPrograms('sshd', 'ffmpeg'), '@windlass/client and videos', form => {
  const { stack, sshd } = useRemoteStack(form);
  const link = useLink(stack);

  test('a video is made, and comes whole over connections that are cut', async () => {
    const windlass = connectWindlass(stack, link.port);
    const { username, privateKey } = sshd;
    const session = await windlass.open('host', { username, privateKey });
    const size = { width: 640, height: 480 };
    const images = await drawFrames({ folder: join(sshd.home, 'frames'), count: 40, ...size });
    const video = await session.video({ images, fps: 10 });
    const states: string[] = [];
    const job = await video.wait({ onChange: ({ state }) => states.push(state) });
    expect(states.at(-1)).toBe('succeeded');
    const answer = await stack.api(`/api/jobs/${video.job}/result`);
    const whole = Buffer.from(await answer.arrayBuffer());
    expect(job.result).toMatchObject({ bytes: whole.length, frames: 40 });
    const { total } = link.connections;
    link.cutAfter('down', Math.floor(whole.length / 2));
    const blob = await video.blob();
    expect(link.connections.total).toBeGreaterThan(total);
    expect(blob.type).toBe('video/mp4');
    expect(Buffer.from(await blob.arrayBuffer()).equals(whole)).toBe(true);
    expect((await stack.api(new URL(video.url).pathname)).status).toBe(200);
    const broken = await session.video({ images: [join(sshd.home, 'nothing.png')] });
    const error = await broken.wait().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(WindlassError);
    expect(error).toMatchObject({ code: 'bad_frames', job: broken.job });
  });

  test('a video outlives its session, for who knows its job', async () => {
    const windlass = connectWindlass(stack);
    const { username, privateKey } = sshd;
    const session = await windlass.open('host', { username, privateKey });
    const images = await drawFrames({ folder: join(sshd.home, 'few'), count: 2 });
    const relative = images.map(path => path.slice(sshd.home.length + 1));
    const made = await session.video({ images: relative, contentType: 'video/webm' });
    const whole = Buffer.from(await (await made.blob()).arrayBuffer());
    const { result } = await (await session.video({ pattern: '~/few/*' })).wait();
    expect(result?.frames).toBe(2);
    for (const [path, frames] of [
      ['few/*', 2],
      [relative[0] as string, 1],
    ] as const) {
      const one = await session.video({ images: path });
      expect((await one.wait()).result?.frames).toBe(frames);
    }
    await session.close();
    const found = await windlass.video(made.job);
    expect(found.url).toBe(made.url);
    const answer = await stack.api(new URL(found.url).pathname);
    expect(answer.status).toBe(200);
    expect(Buffer.from(await answer.arrayBuffer()).equals(whole)).toBe(true);
    const blob = await found.blob();
    expect(blob.type).toBe('video/webm');
    expect(Buffer.from(await blob.arrayBuffer()).equals(whole)).toBe(true);
  });
});

const slurm = missingPrograms('sshd', 'slurmctld', 'slurmd', 'sbatch', 'munged');
describeStack(slurm, '@windlass/client and batch jobs', form => {
  const { stack, sshd } = useRemoteStack(form);
  const cluster = useStarted(startSlurm);

  test('a batch job is run as a command is', async () => {
    cluster.offerTo(sshd);
    const { username, privateKey } = sshd;
    const windlass = connectWindlass(stack);
    const session = await windlass.open('host', { username, privateKey });
    expect((await session.info()).engines).toEqual(['slurm']);
    const run = session.batch({ command: 'echo out; echo err >&2; exit 3', time: 90 });
    const lines = await gather(run);
    expect(lines).toHaveLength(2);
    expect(lines).toContainEqual({ stream: 'stderr', text: 'err' });
    const { job, ...result } = await run.wait();
    expect(result).toEqual({ returncode: 3, output: 'out\n', errors: 'err\n', truncated: false });
    expect(await windlass.wait(job)).toMatchObject({ kind: 'batch', batch: { engine: 'slurm' } });
  });
});
