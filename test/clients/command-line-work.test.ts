import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { drawFrames } from '../harness/draw-frames.ts';
import { describeStack } from '../harness/forms.ts';
import { readLabels } from '../harness/read-labels.ts';
import { missingPrograms } from '../harness/skip.ts';
import { useCommandLine } from '../harness/use-command-line.ts';
import { useRemoteStack } from '../harness/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'the command line', form => {
  const { stack, sshd, client } = useRemoteStack(form);
  const { line, windlass, print, printJson, login } = useCommandLine(stack, sshd);

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
    const view = ['--sort=-second', '--filter', 'sky:eq:rain', '--limit', '2'];
    expect(await print(['rows', model, 'day', ...view])).toBe(
      'second  sky\n2996    rain\n2989    rain\n',
    );
    expect(await printJson(['rows', model, 'day', ...view])).toEqual([
      { second: 2996, sky: 'rain' },
      { second: 2989, sky: 'rain' },
    ]);
    expect(await print(['rows', model, 'day', '--csv', '--limit', '5000'])).toBe(
      ['second,sky', ...rows.map(row => row.replace(';', ',')), ''].join('\r\n'),
    );
  });

  test('CSV has the rows of a view also where it was removed meanwhile, and is made again', async () => {
    const project = (await print(['project', 'create', 'Views'])).trim();
    const model = (await print(['model', 'create', project, 'Views'])).trim();
    const file = join(line.home, 'views.csv');
    writeFileSync(file, 'n\n1\n2\n');
    await print(['upload', file, '--model', model, '--aid', 'views']);
    const { token } = await client.post<{ token: string }>('/api/users/-/tokens', {
      name: 'csv',
      scope: 'read',
    });
    let asked = 0;
    const proxy = createServer(async ({ url, headers }, res) => {
      const isCsv = headers.accept === 'text/csv';
      if (isCsv && asked++ === 0)
        return void res
          .writeHead(202, { 'Content-Type': 'application/json' })
          .end(JSON.stringify({ state: 'running' }));
      const { authorization = '', accept = '' } = headers;
      const answer = await fetch(`${stack.url}${url}`, { headers: { authorization, accept } });
      res.writeHead(answer.status, { 'Content-Type': answer.headers.get('Content-Type') ?? '' });
      res.end(Buffer.from(await answer.arrayBuffer()));
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    try {
      const { port } = proxy.address() as AddressInfo;
      const env = { WINDLASS_URL: `http://127.0.0.1:${port}`, WINDLASS_TOKEN: token };
      const args = ['rows', model, 'views', '--csv', '--sort=-n'];
      expect(await windlass(args, { env })).toEqual({
        ...{ code: 0, stdout: 'n\r\n2\r\n1\r\n', stderr: '' },
      });
      expect(asked).toBe(2);
    } finally {
      proxy.close().closeAllConnections();
    }
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
      'windlass: It is not said where the files go. Give --model ID.\n',
    );
    expect((await windlass(['upload', join(line.home, 'none'), '--model', model])).stderr).toBe(
      `windlass: ${line.home}/none cannot be read.\n`,
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
      stderr: expect.stringMatching(/^windlass: .* is no regular file, .*\.\n$/),
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
    expect(job).toMatchObject({ state: 'succeeded', label: '12 frames, video/mp4' });
    for (const frames of ['frames/*.dat', '~/frames/*.dat', '~/frames/frame %d.dat'])
      expect(await print(['video', 'host', '-o', file, ...login(), frames])).toBe(
        `${file}: 12 frames\n`,
      );
    const none = await windlass(['video', 'host', '-o', file, ...login(), '/nowhere/*.png']);
    expect(none.stderr).toContain('The host has no file like /nowhere/*.png.');
    const nowhere = ['video', 'host', '-o', join(line.home, 'no/study.mp4'), `${folder}/*.dat`];
    expect(await windlass(nowhere)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^windlass: ENOENT: .*\.\n$/),
    });
    const full = `ulimit -f 1; windlass video host -o full.mp4 '${folder}/*.dat'`;
    expect(await line.runInShell(full)).toEqual({
      ...{ code: 1, stdout: '', stderr: 'windlass: EFBIG: file too large, write.\n' },
    });
    expect(readdirSync(line.home).filter(name => name.includes('full.mp4'))).toEqual([]);
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
