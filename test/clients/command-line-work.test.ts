import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { interruptUntilEnded, PROGRAM } from '../harness/clients/command-line.ts';
import { useCommandLine } from '../harness/clients/use-command-line.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { readLabels } from '../harness/files/read-labels.ts';
import { openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** Whether no signal waits for the process (proc(5)). */
const hasTakenSignals = (pid: number | undefined): boolean =>
  /^ShdPnd:\s*0+$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));

describeStack(missingPrograms('sshd'), 'the command line', form => {
  const { stack, sshd, client } = useRemoteStack(form);
  const { line, windlass, print, printJson, keyFile, login } = useCommandLine(stack, sshd);

  /** `ask` has the service answer. */
  type Answer = (request: Request, ask: () => Promise<Response>) => Promise<Response>;

  /** Between a user's command and the service. */
  async function throughProxy(
    answer: Answer,
    use: (env: Record<string, string>) => Promise<void>,
  ): Promise<void> {
    const { token } = await client.post<{ token: string }>('/api/users/-/tokens', {
      name: 'through a proxy',
      scope: 'write',
    });
    const proxy = createServer(async (req, res) => {
      const { method, url, headers } = req;
      const { host: _, connection: __, 'transfer-encoding': ___, ...sent } = headers;
      const body = method === 'GET' ? undefined : await buffer(req);
      const request = new Request(`${stack.url}${url}`, {
        method,
        body,
        headers: sent as Record<string, string>,
      });
      const given = await answer(request, () => fetch(request));
      const type = given.headers.get('Content-Type') ?? '';
      res.writeHead(given.status, { 'Content-Type': type });
      res.end(Buffer.from(await given.arrayBuffer()));
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    try {
      const { port } = proxy.address() as AddressInfo;
      await use({ WINDLASS_URL: `http://127.0.0.1:${port}`, WINDLASS_TOKEN: token });
    } finally {
      proxy.close().closeAllConnections();
    }
  }

  const statesOf = async (name: string) =>
    (
      await client.get<{ items: { state: string }[] }>(`/api/jobs?name=${encodeURIComponent(name)}`)
    ).items.map(({ state }) => state);

  test('a command that is to read the start-up files has a session in which each does', async () => {
    const show = ['--', 'echo "$HOME"'];
    await print(['run', 'host', ...login(), ...show]);
    for (const _ of [1, 2])
      expect(await print(['run', 'host', ...login(), '--startup', 'each', ...show])).toBe(
        `${sshd.home}\n`,
      );
    const sessions = await printJson(['sessions']);
    expect(sessions.map(({ startup }) => startup).sort()).toEqual(['each', 'once']);
    await print(['close', ...sessions.map(({ sid }) => sid)]);
    const { code, stderr } = await windlass(['run', 'host', '--startup', 'never', ...show]);
    expect(code).not.toBe(0);
    expect(stderr).toContain('once, each');
  });

  test('a table is uploaded into a new model, and read as a table, as JSON and as CSV', async () => {
    const project = (await print(['project', 'create', 'Weather'])).trim();
    const model = (await print(['model', 'create', project, 'A day'])).trim();
    expect(await print(['project', 'list'])).toContain(project);
    expect(await print(['model', 'list', project])).toMatch(new RegExp(`${model} .* A day\n`));
    const file = join(line.home, 'day.csv');
    const rows = Array.from({ length: 3_000 }, (_, n) => `${n};${n % 7 ? 'clear' : 'rain'}`);
    writeFileSync(file, ['second;sky', ...rows, ''].join('\n'));
    const upload = ['upload', file, '--model', model, '--aid', 'day', '--set', 'delimiter=;'];
    expect(await print(upload)).toBe('Parsed: csv: day.\n');
    const show = ['model', 'show', model];
    expect(await printJson(show)).toMatchObject([{ aid: 'day', type: 'table', input: false }]);
    await print([...upload, '--input']);
    const [day] = await printJson(show);
    expect(day).toMatchObject({ input: true });
    expect((await print(show)).split('\n')).toEqual([
      'TYPE   INPUT  BYTES  AGE  NAME',
      expect.stringMatching(new RegExp(`^table  yes    ${day?.size} +\\d+s +day$`)),
      '',
    ]);
    const view = ['--sort=-second', '--filter', 'sky:eq:rain', '--limit', '2'];
    const cut = { code: 0, stderr: 'windlass: 2 of 429 rows; --limit N for more\n' };
    expect(await windlass(['rows', model, 'day', ...view])).toEqual({
      stdout: 'second  sky\n2996    rain\n2989    rain\n',
      ...cut,
    });
    expect(await windlass(['rows', model, 'day', ...view, '--json'])).toEqual({
      stdout: '{"second":2996,"sky":"rain"}\n{"second":2989,"sky":"rain"}\n',
      ...cut,
    });
    // Programs get all, and a cut is told.
    const csv = ['second,sky', ...rows.map(row => row.replace(';', ',')), ''].join('\n');
    expect(await windlass(['rows', model, 'day', '--csv'])).toEqual({
      code: 0,
      stdout: csv,
      stderr: '',
    });
    expect(await printJson(['rows', model, 'day'])).toHaveLength(3_000);
    expect(await windlass(['rows', model, 'day', '--csv', '--limit', '1'])).toEqual({
      code: 0,
      stdout: 'second,sky\n0,rain\n',
      stderr: 'windlass: 1 of 3,000 rows; --limit N for more\n',
    });
    expect(await windlass(['rows', model, 'day', '--limit', '0'])).toMatchObject({
      stdout: '',
      stderr: expect.stringContaining('It must be at least 1.'),
    });
    const drawn = await windlass(['rows', model, 'day']);
    expect(drawn.stdout.split('\n')).toHaveLength(102);
    expect(drawn.stderr).toBe('windlass: 100 of 3,000 rows; --limit N for more\n');
  });

  test('CSV of more rows than one answer has is one CSV', async () => {
    const model = await makeModel('Many');
    const file = join(line.home, 'many.csv');
    // The name has a line of its own.
    writeFileSync(file, `"n\nm"\n${'7\n'.repeat(1_000_000)}8\n9\n`);
    await print(['upload', file, '--model', model, '--aid', 'many']);
    const { stdout, stderr } = await windlass(['rows', model, 'many', '--csv']);
    expect(stderr).toBe('');
    expect(stdout === `"n\nm"\n${'7\n'.repeat(1_000_000)}8\n9\n`).toBe(true);
    const cut = await windlass(['rows', model, 'many', '--csv', '--limit', '1000001']);
    expect(cut.stdout === `"n\nm"\n${'7\n'.repeat(1_000_000)}8\n`).toBe(true);
    expect(cut.stderr).toContain('1,000,001 of 1,000,002 rows');
    const late = ['rows', model, 'many', '--csv', '--offset', '1000002'];
    expect((await windlass(late)).stdout).toBe('"n\nm"\n');
  });

  test('CSV has the rows of a view also where it was removed meanwhile, and is made again', async () => {
    const project = (await print(['project', 'create', 'Views'])).trim();
    const model = (await print(['model', 'create', project, 'Views'])).trim();
    const file = join(line.home, 'views.csv');
    writeFileSync(file, 'n\n1\n2\n');
    await print(['upload', file, '--model', model, '--aid', 'views']);
    let asked = 0;
    const answer: Answer = async (request, ask) => {
      const isCsv = request.headers.get('Accept') === 'text/csv';
      return isCsv && asked++ === 0 ? Response.json({ state: 'running' }, { status: 202 }) : ask();
    };
    await throughProxy(answer, async env => {
      const args = ['rows', model, 'views', '--csv', '--sort=-n'];
      expect(await windlass(args, { env })).toEqual({
        code: 0,
        stdout: 'n\n2\n1\n',
        stderr: '',
      });
    });
    expect(asked).toBe(2);
  });

  test('a bad row is told, and with what an upload goes on', async () => {
    const project = (await print(['project', 'create', 'Errors'])).trim();
    const model = (await print(['model', 'create', project, 'Errors'])).trim();
    const file = join(line.home, 'bad.csv');
    writeFileSync(file, 'a,b\n1,2\n3\n');
    const { code, stderr } = await windlass(['upload', file, '--model', model]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/row 3|row 2|line 3/);
    expect((await windlass(['upload', file])).stderr).toBe(
      'windlass: No model was given. Give --model ID.\n',
    );
    expect(await windlass(['upload', file, file, '--model', model, '--aid', 'one'])).toMatchObject({
      stdout: '',
      stderr:
        'windlass: The number of files is 2, and that of their names 1. Give --aid once for each file, or not at all.\n',
    });
    expect((await windlass(['upload', join(line.home, 'none'), '--model', model])).stderr).toBe(
      `windlass: ${line.home}/none cannot be read: no such file or directory.\n`,
    );
  });

  async function makeModel(name: string): Promise<string> {
    const project = (await print(['project', 'create', name])).trim();
    return (await print(['model', 'create', project, name])).trim();
  }

  test('columns stay in the order of the table, whatever their names, and an empty one has a head', async () => {
    const model = await makeModel('Years');
    const file = join(line.home, 'years.csv');
    writeFileSync(file, 'time,2020,2019\n1,20.5,19.5\n');
    await print(['upload', file, '--model', model, '--aid', 'years']);
    expect(await print(['rows', model, 'years'])).toBe('time  2020  2019\n1     20.5  19.5\n');
    expect(await print(['rows', model, 'years', '--json'])).toBe(
      '{"time":1,"2020":20.5,"2019":19.5}\n',
    );
    const wide = join(line.home, 'wide.csv');
    const names = Array.from({ length: 101 }, (_, n) => `c${n}`);
    const cells = Array.from({ length: 1_200 }, (_, row) => names.map((_, n) => row * n).join(','));
    writeFileSync(wide, [names.join(','), ...cells, ''].join('\n'));
    await print(['upload', wide, '--model', model, '--aid', 'wide']);
    const all = await print(['rows', model, 'wide', '--limit', '10000', '--json']);
    expect(all.split('\n').map(text => text && Object.values(JSON.parse(text)).join())).toEqual([
      ...cells,
      '',
    ]);
    const none = ['--filter', 'time:gt:1'];
    expect(await print(['rows', model, 'years', ...none])).toBe('time  2020  2019\n');
  });

  test('numbers have the digits that the service writes, also where JavaScript writes others', async () => {
    const model = await makeModel('Digits');
    const file = join(line.home, 'digits.csv');
    writeFileSync(
      file,
      'v,t\n9223372036854775808,a\n-0.0,b\n1e21,c\n-144115188075855872,\n0.5,e\n',
    );
    await print(['upload', file, '--model', model, '--aid', 'digits']);
    const answer = await client.fetch(`/api/models/${model}/tables/digits/rows`);
    const numbers = ['9223372036854775808', '-0', '1e+21', '-144115188075855872', '0.5'];
    const texts = ['"a"', '"b"', '"c"', 'null', '"e"'];
    const pairs = numbers.map((number, n) => `[${number},${texts[n]}]`);
    expect(await answer.text()).toContain(`"rows":[${pairs.join(',')}]`);
    const rows = numbers.map((number, n) => `{"v":${number},"t":${texts[n]}}\n`);
    expect(await print(['rows', model, 'digits', '--json'])).toBe(rows.join(''));
    const drawn = (await print(['rows', model, 'digits'])).split('\n').slice(1, -1);
    expect(drawn.map(row => row.split(' ')[0])).toEqual(numbers);
  });

  test('what comes through a pipe is uploaded whole, and no folder is', async () => {
    const mid = await makeModel('Pipes');
    const upload = (path: string, aid: string) => [
      'upload',
      path,
      '--model',
      mid,
      '--parser',
      'blob',
      '--aid',
      aid,
    ];
    const bytesOf = async (aid: string) =>
      (await client.fetch(`/api/models/${mid}/files/${aid}`)).text();
    await print(upload('/dev/stdin', 'standard'), 'standard input');
    expect(await bytesOf('standard')).toBe('standard input');
    const pipe = join(line.home, 'upload.pipe');
    expect(spawnSync('mkfifo', [pipe]).status).toBe(0);
    const uploading = print(upload(pipe, 'named'));
    await writeFile(pipe, 'a named pipe');
    await uploading;
    expect(await bytesOf('named')).toBe('a named pipe');
    expect(await windlass(upload(line.home, 'folder'))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^windlass: .* is a folder\. Give one file: .*\.\n$/),
    });
  });

  test('how an upload is resumed is told when it begins, and not where it has ended', async () => {
    const model = await makeModel('Resumed');
    const file = join(line.home, 'resumed file.bin');
    writeFileSync(file, Buffer.alloc((8 << 20) + 1));
    const { stderr } = await windlass(['upload', file, '--model', model, '--parser', 'blob']);
    const [, id = ''] = /^windlass: if .* go on with: windlass upload --resume (\w+) '.*'\n$/.exec(
      stderr,
    ) ?? [stderr];
    expect(await print(['upload', '--resume', id, file])).toMatch(
      /^Parsed: .*\. It had been sent before: nothing was sent now\.\n$/,
    );
    writeFileSync(file, Buffer.alloc((8 << 20) + 1, 'x'));
    expect(await windlass(['upload', '--resume', id, file])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/ begun with other files: .* not the same ones\. [^\n]*\n$/),
    });
    const bad = join(line.home, 'not numbers.csv');
    writeFileSync(bad, 'a,b\n1,2\n3\n');
    expect((await windlass(['upload', bad, '--model', model])).stderr).not.toContain('--resume');
    const { items } = await client.get<{ items: { id: string }[] }>('/api/uploads');
    const failed = items.map(upload => upload.id).find(one => one !== id) ?? '';
    const other = await windlass(['upload', '--resume', failed, file, bad]);
    expect(other).toMatchObject({ code: 1, stdout: '' });
    expect(other.stderr).toBe(
      `windlass: Upload ${failed} was begun with other files: 1, not 2. Resume it with the same files in the same order, or begin another one.\n`,
    );
    expect((await windlass(['upload', '--resume', 'nosuch', file])).stderr).toMatch(
      /^windlass: Not found: there is no such upload session\..*\n$/,
    );
  });

  test('a video is made of a pattern, in natural order', async () => {
    const folder = join(sshd.home, 'frames');
    await drawFrames({ folder, count: 12 });
    const file = join(line.home, 'study.mp4');
    const labelled = ['--label', 'name', '--quality', '1'];
    const given = ['-o', file, ...labelled, ...login(), `${folder}/*.dat`];
    const made = await print(['video', 'host', ...given]);
    expect(made).toBe(`${file}: 12 frames\n`);
    expect(readFileSync(file).subarray(4, 8).toString()).toBe('ftyp');
    const names = Array.from({ length: 12 }, (_, n) => `..frame ${n}.dat`.slice(-8));
    const labels = await readLabels(file, { length: 10 });
    expect(labels.map(label => label.slice(2))).toEqual(names);
    const [job] = await printJson(['jobs', '--kind', 'video', '--limit', '1']);
    expect(job).toMatchObject({ state: 'succeeded', label: `${folder}/*.dat, video/mp4` });
    for (const frames of ['frames/*.dat', '~/frames/*.dat', '~/frames/frame %d.dat'])
      expect(await print(['video', 'host', '-o', file, ...login(), frames])).toBe(
        `${file}: 12 frames\n`,
      );
    const looks = await printJson(['jobs', '--kind', 'command', '--limit', '3']);
    const homes = ['~/', '~/', '~'].map(home => `find frames: ${home}`);
    expect(looks.map(({ name }) => name)).toEqual(homes);
    const none = await windlass(['video', 'host', '-o', file, ...login(), '/nowhere/*.png']);
    expect(none.stderr).toContain('nothing matches the pattern /nowhere/*.png.');
    const nowhere = ['video', 'host', '-o', join(line.home, 'no/study.mp4'), `${folder}/*.dat`];
    expect(await windlass(nowhere)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^windlass: There is no folder .* here\. Make it first\.\n$/),
    });
    const full = `ulimit -f 1; windlass video host -o full.mp4 '${folder}/*.dat'`;
    const [{ id: last }] = await printJson(['jobs', '--kind', 'video', '--limit', '1']);
    const unsaved = await line.runInShell(full);
    expect(unsaved).toMatchObject({ code: 1, stdout: '' });
    const [{ id }] = await printJson(['jobs', '--kind', 'video', '--limit', '1']);
    expect(id).not.toBe(last);
    expect(unsaved.stderr).toBe(
      `windlass: the video is kept for a day: windlass open ${id}\n` +
        'windlass: EFBIG: file too large, write.\n',
    );
    expect(readdirSync(line.home).filter(name => name.includes('full.mp4'))).toEqual([]);
  });

  test('the shell of the host reads nothing in the names of frames but * and ~', async () => {
    const folder = join(sshd.home, "it's a $(touch made) [1]");
    await drawFrames({ folder, count: 12 });
    const file = join(line.home, 'names.mp4');
    const labelled = ['--label', 'name', '--quality', '1'];
    /** What a label shows of the names. */
    const labels = async (...frames: string[]) => {
      await print(['video', 'host', '-o', file, ...labelled, ...login(), ...frames]);
      return (await readLabels(file, { length: 10 })).map(label => label.slice(2));
    };
    const ends = (...names: string[]) => names.map(name => name.slice(-8));
    const path = (name: string) => join(folder, name);
    renameSync(path('frame 1.dat'), path('frame [2].dat'));
    const below = folder.slice(sshd.home.length + 1);
    expect(await labels(path('frame [2].dat'))).toEqual(ends('frame [2].dat'));
    expect(await labels(`~/${below}/fr*.dat`)).toHaveLength(12);
    expect(
      await labels(`~/${below}/frame 1*.dat`, `${below}/frame 2.dat`, path('frame [2].dat')),
    ).toEqual(ends('frame 10.dat', 'frame 11.dat', 'frame 2.dat', 'frame [2].dat'));
    const numbered = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map(n => `frame ${n}.dat`);
    expect(await labels(path('frame*.dat'), path('frame 2.dat'))).toEqual(
      ends('frame 0.dat', ...numbered, 'frame [2].dat', 'frame 2.dat'),
    );
    const [look] = await printJson(['jobs', '--kind', 'command', '--limit', '1']);
    expect(look.name).toBe(`find frames: ${path('frame*.dat')} ${path('frame 2.dat')}`);
    const long = `~/${below}/frame 2*.dat`;
    const many = Array.from({ length: 20 }, () => `~/${below}/../*/frame 2*.d😀*`);
    await windlass(['video', 'host', '-o', file, ...login(), long, ...many]);
    const [cut] = await printJson(['jobs', '--kind', 'command', '--limit', '1']);
    expect(cut.name.length).toBe(200);
    expect(readdirSync(sshd.home)).not.toContain('made');
  });

  test('a pattern that finds nothing beside another one is named, and where it was looked for', async () => {
    await drawFrames({ folder: join(sshd.home, 'one'), count: 1 });
    const given = ['-o', join(line.home, 'one.mp4'), ...login(), '~/one/*.dat'];
    const { code, stderr } = await windlass(['video', 'host', ...given, 'none/*.dat']);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`The host has no file like none/*.dat in ${sshd.home}.`),
    ]);
  });

  test('frames that a video has not are told, and up to twenty bad ones named', async () => {
    const folder = join(sshd.home, 'gaps');
    const frames = await drawFrames({ folder, count: 30 });
    unlinkSync(join(folder, 'frame 5.dat'));
    const file = join(line.home, 'gaps.mp4');
    const make = (...words: string[]) =>
      windlass(['video', 'host', '-o', file, ...login(), ...words]);
    const pattern = join(folder, 'frame %d.dat');
    const gap = `24 more after a gap at ${join(folder, 'frame 5.dat')}: give --last to have them`;
    expect(await make(pattern)).toMatchObject({ stdout: `${file}: 5 frames, ${gap}\n` });
    expect(await make('--skip-bad', '--last', '29', pattern)).toMatchObject({
      stdout: `${file}: 29 frames, 1 left out\n`,
      stderr: `windlass: ${join(folder, 'frame 5.dat')} is missing\n`,
    });
    expect(await make('--first', '10', '--step', '2', '--last', '19', pattern)).toMatchObject({
      stdout: `${file}: 5 frames\n`,
    });
    for (const frame of frames.slice(6)) writeFileSync(frame, 'no picture');
    const { stderr } = await make('--last', '29', pattern);
    const named = stderr.split('\n').filter(each => / is (missing|not an image)/.test(each));
    expect(named.slice(0, -1)).toHaveLength(20);
    expect(stderr).toContain('windlass: and 5 more\n');
    const { stdout } = await make('--json', '--last', '29', pattern);
    expect(JSON.parse(stdout).error.frames).toHaveLength(25);
  });

  test('a video that cannot be written here is not made', async () => {
    // Everything may be written by root.
    const [program = '', ...before] = [
      ...(process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--clear-groups'] : []),
      ...[process.execPath, PROGRAM],
    ];
    const args = ['video', 'host', '-o', '/video.mp4', '/nowhere/*.png'];
    const { ended } = line.startProgram(program, [...before, ...args]);
    expect(await ended).toEqual({
      code: 1,
      stdout: '',
      stderr: 'windlass: Nothing can be written to / here.\n',
    });
  });

  test('a video of a pattern is of one folder', async () => {
    for (const run of ['run1', 'run2'])
      await drawFrames({ folder: join(sshd.home, 'runs', run), count: 1 });
    const name = 'of two folders';
    const file = join(line.home, 'runs.mp4');
    const given = ['-o', file, '--name', name, ...login(), 'runs/run*/frame %d.dat'];
    const { code, stderr } = await windlass(['video', 'host', ...given]);
    expect(code).toBe(1);
    for (const run of ['run1', 'run2']) expect(stderr).toContain(join(sshd.home, 'runs', run));
    expect(await statesOf(name)).toEqual([]);
  });

  test('Ctrl-C while a video is downloaded leaves no part of it, and says how to get it', async () => {
    const folder = join(sshd.home, 'downloaded');
    await drawFrames({ folder, count: 2 });
    const named = ['--name', 'downloaded', ...login(), `${folder}/*.dat`];
    let isAsked = false;
    const answer: Answer = (request, ask) => {
      if (!request.url.endsWith('/result')) return ask();
      isAsked = true;
      return new Promise(() => {});
    };
    await throughProxy(answer, async env => {
      const args = ['video', 'host', '-o', join(line.home, 'cut.mp4'), ...named];
      const { child, ended } = line.start(args, { env });
      await waitFor(() => isAsked, { what: 'the request for the video' });
      child.kill('SIGINT');
      const { code, stderr } = await ended;
      expect(code).toBe(130);
      const [job] = await printJson(['jobs', '--kind', 'video', '--limit', '1']);
      expect(stderr).toBe(`windlass: the video is kept for a day: windlass open ${job.id}\n`);
      expect(readdirSync(line.home).filter(name => name.includes('cut.mp4'))).toEqual([]);
    });
  });

  test('files are copied to a host and from it, whole, with their mode', async () => {
    const bytes = Buffer.alloc(3_000_001, Buffer.from('0123456789abc'));
    const file = join(line.home, 'input.dat');
    writeFileSync(file, bytes, { mode: 0o640 });
    await print(['cp', ...login(), '--parents', file, 'host:study/deep/']);
    const there = join(sshd.home, 'study/deep/input.dat');
    expect(readFileSync(there).equals(bytes)).toBe(true);
    expect(statSync(there).mode & 0o777).toBe(0o640);
    const back = join(line.home, 'back.dat');
    writeFileSync(back, 'before', { mode: 0o604 });
    writeFileSync(`${back}.part`, "the user's own");
    const from = 'host:~/study/deep/input.dat';
    expect(await printJson(['cp', ...login(), from, back])).toEqual([
      { from, to: back, bytes: bytes.length },
    ]);
    expect(readFileSync(back).equals(bytes)).toBe(true);
    expect(statSync(back).mode & 0o777).toBe(0o604);
    expect(readFileSync(`${back}.part`, 'utf8')).toBe("the user's own");
    expect(readdirSync(line.home).filter(name => name.startsWith('.back'))).toEqual([]);
    writeFileSync(there, 'to a pipe');
    const pipe = join(line.home, 'pipe');
    expect(spawnSync('mkfifo', [pipe]).status).toBe(0);
    const piped = readFile(pipe, 'utf8');
    await print(['cp', ...login(), 'host:study/deep/input.dat', pipe]);
    expect(await piped).toBe('to a pipe');
    const none = await windlass(['cp', ...login(), 'host:none', line.home]);
    expect(none).toMatchObject({ code: 1, stderr: expect.stringMatching(/there is no .*\/none/) });
    expect((await windlass(['cp', file, 'there'])).stderr).toContain('Name it as HOST:PATH.');
  });

  test('sessions are listed and closed', async () => {
    await print(['run', 'host', ...login(), '--', 'true']);
    const [session] = await printJson(['sessions']);
    expect(session).toMatchObject({ hostname: 'host', username: sshd.username, state: 'open' });
    expect(await print(['sessions'])).toContain(session.sid);
    const detached = await print(['run', 'host', ...login(), '-d', '--', 'sleep 600']);
    const id = detached.trim();
    expect(await printJson(['cancel', id])).toEqual([{ id, cancelled: true }]);
    await windlass(['wait', id]);
    expect(await printJson(['cancel', id])).toEqual([{ id, cancelled: false }]);
    const { sid } = session;
    expect(await printJson(['close', sid])).toEqual([{ sid, closed: true }]);
    expect(await printJson(['sessions'])).toEqual([]);
    const none = await windlass(['close', '--json', sid]);
    expect(none).toMatchObject({ code: 1, stdout: `{"sid":"${sid}","closed":false}\n` });
    expect(none.stderr).toContain(`There is no session ${sid}.`);
  });

  test('a command runs in the session that this program opened, and says so where that is ended', async () => {
    await print(['run', 'host', ...login(), '--', 'true']);
    const [own] = await printJson(['sessions']);
    const other = await openSession(client, sshd);
    const begin = async () =>
      (await print(['run', 'host', ...login(), '-d', '--', 'sleep 600'])).trim();
    const [asked, unasked] = [await begin(), await begin()];
    await print(['cancel', asked]);
    await print(['close', other]);
    expect(await client.get(`/api/jobs/${unasked}`)).toMatchObject({ session: own.sid });
    await print(['close', own.sid]);
    expect(await waitForEnd(client, asked)).toMatchObject({ error: { detail: 'Cancelled.' } });
    expect(await waitForEnd(client, unasked)).toMatchObject({
      state: 'cancelled',
      error: { detail: expect.stringContaining('its session ended') },
    });
  });

  test('each of several jobs is cancelled, also after one that is not there', async () => {
    const begin = async () =>
      (await print(['run', 'host', ...login(), '-d', '--', 'sleep 600'])).trim();
    const [one, two] = [await begin(), await begin()];
    expect(await windlass(['cancel', one, 'none', two])).toEqual({
      code: 1,
      stdout: `${one} is being cancelled.\n${two} is being cancelled.\n`,
      stderr: expect.stringMatching(/^windlass: none: Not found.*\n$/),
    });
  });

  test('Ctrl-C before the id of a detached job is told cancels the job', async () => {
    await print(['run', 'host', ...login(), '--', 'true']);
    const name = 'detached and cancelled';
    const args = ['run', 'host', ...login(), '-d', '--name', name, '--', 'sleep 600'];
    for (const times of [1, 2]) {
      let isAccepted = false;
      let isTold = false;
      const answer: Answer = async (request, ask) => {
        const given = await ask();
        if (!request.url.endsWith('/launch')) return given;
        isAccepted = true;
        await waitFor(() => isTold, { what: 'the signal' });
        return given;
      };
      await throughProxy(answer, async env => {
        const { child, ended } = line.start(args, { env });
        await waitFor(() => isAccepted, { what: 'the request' });
        if (times === 2) {
          expect(await interruptUntilEnded({ child, ended })).toMatchObject({
            code: 130,
            stdout: '',
            stderr: 'windlass: the job may have begun, and then goes on: windlass jobs\n',
          });
          isTold = true;
          return;
        }
        child.kill('SIGINT');
        await waitFor(() => hasTakenSignals(child.pid), { what: 'the signal to be taken' });
        isTold = true;
        expect(await ended).toMatchObject({ code: 130, stderr: '' });
        await waitFor(async () => (await statesOf(name)).join() === 'cancelled', {
          what: 'the job to end',
        });
      });
    }
    const jobs = await printJson(['jobs', '--state', 'running']);
    await print(['cancel', ...jobs.map(({ id }) => id)]);
  });

  test('Ctrl-C cancels the video that is made', async () => {
    const folder = join(sshd.home, 'long');
    await drawFrames({ folder, count: 1 });
    for (let n = 1; n < 3_000; n++)
      symlinkSync(join(folder, 'frame 0.dat'), join(folder, `frame ${n}.dat`));
    const name = 'a video that is cancelled';
    const file = join(line.home, 'cancelled.mp4');
    const given = ['-o', file, '--name', name, '--width', '1920', ...login()];
    const { child, ended } = line.start(['video', 'host', ...given, `${folder}/*.dat`]);
    await waitFor(async () => (await statesOf(name)).length === 1, { what: 'the job' });
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 130, stderr: '' });
    expect(await statesOf(name)).toEqual(['cancelled']);
  });

  test('a pattern of frames does not leave out a link to nothing', async () => {
    const folder = join(sshd.home, 'linked');
    await drawFrames({ folder, count: 2 });
    symlinkSync(join(folder, 'nothing'), join(folder, 'frame 1b.dat'));
    const file = join(line.home, 'linked.mp4');
    const made = await windlass(['video', 'host', '-o', file, ...login(), `${folder}/*.dat`]);
    expect(made.code).toBe(1);
    expect(made.stderr).toContain('frame 1b.dat');
  });

  test('nothing is done as one of several accounts unless it is said which', async () => {
    await print(['run', 'host', ...login(), '--', 'true']);
    let own = true;
    let changed: object = {};
    const withRoot: Answer = async (request, ask) => {
      const given = await ask();
      if (request.method !== 'GET' || !request.url.includes('/api/remotes?')) return given;
      const { items, next } = (await given.json()) as { items: { username: string }[]; next: null };
      const other = items.map(session => ({ ...session, username: 'other', ...changed }));
      return Response.json({ items: own ? [...items, ...other] : other, next });
    };
    await throughProxy(withRoot, async env => {
      const words = ['run', 'host', '-n', '--', 'echo done'];
      const accounts = [sshd.username, 'other'].sort();
      const refused = {
        code: 255,
        stdout: '',
        stderr: `windlass: You are logged in to host as ${accounts.join(' and as ')}. Say as whom it is done, such as --user ${accounts[0]}.\n`,
      };
      expect(await windlass(words, { env })).toEqual(refused);
      // Start-up files choose among the sessions of an account, and no account.
      changed = { startup: 'each' };
      for (const startup of ['once', 'each'])
        expect(
          await windlass(['run', '--startup', startup, ...words.slice(1)], { env }),
          startup,
        ).toEqual(refused);
      // Who has not answered the host yet is not logged in.
      changed = { state: 'challenge' };
      expect(await windlass(words, { env })).toEqual({ code: 0, stdout: 'done\n', stderr: '' });
      changed = {};
      expect(await windlass(['run', ...login(), ...words.slice(1)], { env })).toEqual({
        code: 0,
        stdout: 'done\n',
        stderr: '',
      });
      own = false;
      expect(await windlass(words, { env })).toMatchObject({ code: 0, stderr: '' });
      // A new session is of the account that the others are of.
      const withKey = ['run', '--startup', 'each', '--key', keyFile(), ...words.slice(1)];
      expect(await windlass(withKey, { env })).toMatchObject({
        code: 255,
        stderr: expect.stringContaining('The host refused the user name'),
      });
      const shell = `'${process.execPath}' '${fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))}' run host -n -- echo done`;
      const { ended } = line.startProgram('script', ['-qefc', shell, '/dev/null'], {
        env,
        input: '',
      });
      expect((await ended).stdout).toBe('windlass: as other on host\r\ndone\r\n');
    });
  });

  test('the page of a job or a project is opened in a browser, or named where there is none', async () => {
    const browser = join(line.home, 'browser');
    const seen = join(line.home, 'seen');
    writeFileSync(browser, `#!/bin/sh\nprintf '%s\\n' "$@" >>'${seen}'\n`, { mode: 0o755 });
    const open = async (args: string[], env: Record<string, string> = {}) =>
      JSON.parse((await windlass(['open', ...args, '--json'], { env })).stdout);
    const job = await print(['run', 'host', ...login(), '-d', '--', 'true']);
    const project = await print(['project', 'create', 'Opened']);
    const pages = { [job.trim()]: 'jobs', [project.trim()]: 'projects' };
    for (const [id, page] of Object.entries(pages)) {
      const url = `${stack.url}/console/${page}/${id}`;
      expect(await open([id], { BROWSER: browser })).toEqual({ url, opened: true });
      await waitFor(
        () => readFileSync(seen, { encoding: 'utf8', flag: 'a+' }).endsWith(`${url}\n`),
        {
          what: 'the browser to open',
        },
      );
    }
    const run = `${stack.url}/console/run`;
    expect(await open([])).toEqual({ url: run, opened: false });
    for (const BROWSER of ['/nowhere', '/bin/false'])
      expect(await open([], { BROWSER })).toEqual({ url: run, opened: false });
    expect(await print(['open'])).toBe(`${run}\n`);
    expect(await windlass(['open', 'nothing'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no job and no project nothing of yours.'),
    });
  });
});
