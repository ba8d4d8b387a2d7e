import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { createServer, type UserConfig } from 'vite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { STARTS_WORK } from '../../clients/typescript/src/http.ts';
import { guide } from '../harness/files/guide.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { addHost } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { readDocument } from '../http/read-document.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const SOURCE = join(ROOT, 'clients/typescript');
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
/** By esbuild it is 2% more, and Vite adds its loader of parts that come later: README.md says 12 kB. */
const MAX_BYTES = 9_750;

interface Package {
  version: string;
  dependencies: Record<string, string>;
}

/** A program's folder, which has the package as it is published in its node_modules. */
const folder = makeTempDir('client-package');
const installed = join(folder.path, 'node_modules/@windlass/client');
afterAll(() => folder.remove());

const readPackage = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Package;
/** What the compiler says of files in the folder, with these options. */
async function checkTypes(files: string[], options: string[]): Promise<string> {
  const strict = ['--noEmit', '--strict', '--target', 'es2022', '--skipLibCheck', 'false'];
  const args = [TSC, '--ignoreConfig', ...files, ...strict, ...options];
  return run(process.execPath, args, { cwd: folder.path }).then(
    ({ stdout }) => stdout,
    ({ stdout }: { stdout: string }) => stdout,
  );
}

beforeAll(async () => {
  mkdirSync(installed, { recursive: true });
  for (const name of ['package.json', 'README.md'])
    cpSync(join(SOURCE, name), join(installed, name));
  for (const project of ['tsconfig.json', 'tsconfig.node.json'])
    await run(process.execPath, [
      ...[TSC, '-p', join(SOURCE, project)],
      ...['--outDir', join(installed, 'dist')],
    ]);
  for (const name of ['openapi-fetch', 'openapi-typescript-helpers', '@types', 'undici-types'])
    symlinkSync(join(ROOT, 'node_modules', name), join(folder.path, 'node_modules', name));
  writeFileSync(join(folder.path, 'package.json'), '{"type": "module"}');
});

test('the package has the version of the product, and the same packages', () => {
  const product = readPackage(join(ROOT, 'package.json'));
  const { version, dependencies } = readPackage(join(SOURCE, 'package.json'));
  expect(version).toBe(product.version);
  for (const [name, wanted] of Object.entries(dependencies))
    expect(product.dependencies[name]).toBe(wanted);
});

test(`the files that run and follow commands have less than ${MAX_BYTES} bytes by gzip`, async () => {
  const entry = join(folder.path, 'page.js');
  writeFileSync(
    entry,
    `import { Windlass } from '@windlass/client';
const windlass = new Windlass({ url: '/' });
const show = async lines => { for await (const { text } of lines) console.log(text); };
await show(windlass.session('one').run('make'));
await show(windlass.follow('another'));
`,
  );
  const bundle = await rolldown({ input: entry, platform: 'browser', logLevel: 'silent' });
  const { output } = await bundle.generate({ format: 'esm', minify: true });
  await bundle.close();
  const chunks = output.filter(one => one.type === 'chunk');
  const isUpload = ({ code }: { code: string }) => code.includes('Content-Digest');
  // What a page seldom needs comes when it does.
  const loaded = new Set(chunks.filter(({ isEntry }) => isEntry));
  for (const { imports } of loaded)
    for (const one of chunks) if (imports.includes(one.fileName)) loaded.add(one);
  const code = [...loaded].map(one => one.code).join('');
  expect([...loaded].some(isUpload)).toBe(false);
  expect(chunks.some(isUpload)).toBe(true);
  expect(code).toContain('Idempotency-Key');
  // A server compresses each file by itself.
  const bytes = [...loaded].reduce((sum, one) => sum + gzipSync(one.code).length, 0);
  expect(bytes).toBeLessThan(MAX_BYTES);
});

test('its types hold in a page, in Node, and for what the service answers', async () => {
  const source = `import { unwrap, Windlass, WindlassError } from '@windlass/client';
const windlass = new Windlass({ url: '/', token: async () => 'text' });
export async function use(file: Blob): Promise<number> {
  const session = await windlass.open('lab', { username: 'ada', answer: ({ prompts }) => prompts.map(p => p.text) });
  const run = session.run('make', { cwd: '/tmp', env: { A: 'b' }, signal: AbortSignal.timeout(1) });
  for await (const { stream, text } of run) if (stream === 'stderr') console.log(text.length);
  for await (const { bytes } of windlass.follow(await run.job).chunks()) console.log(new Blob([bytes]));
  for await (const { label } of windlass.jobs({ kind: 'command', state: ['queued', 'running'] })) console.log(label);
  for await (const job of windlass.jobs({ owner: 'ada' })) if ('label' in job) console.log(job.label);
  const { items } = await unwrap(windlass.api.GET('/api/hosts'));
  for await (const row of windlass.rows('mid', 'aid', { sort: 'a' })) console.log(row.a);
  await windlass.upload(file, { mid: 'mid', parser: 'csv', delimiter: ';', resume: undefined });
  await windlass.api.POST('/api/events/{event}', { params: { path: { event: 'a/b' }, query: { query: { c: 1 } } } });
  return (await run.wait()).returncode + items.filter(host => host.agent).length;
}
export const send = (files: FileList) => windlass.upload(files, { resume: 'u' });
export const statusOf = (error: unknown) => (error instanceof WindlassError ? error.status : undefined);
export const wrongOf = (error: WindlassError): string[] =>
  error.code === 'invalid_input' || error.code === 'of a newer one' ? error.fields.map(one => one.problem) : [];
`;
  const wrong = `${source}
windlass.session('one').run('make', { cwdd: '/tmp' });
windlass.jobs({ kind: 'comand' });
windlass.upload(new Blob(), { mid: 'm', parser: 'csv', onProgres: console.log });
windlass.upload('a/path', { mid: 'm', parser: 'csv' });
for await (const job of windlass.jobs({ owner: 'ada' })) console.log(job.label);
`;
  writeFileSync(join(folder.path, 'use.ts'), source);
  writeFileSync(join(folder.path, 'wrong.ts'), wrong);
  writeFileSync(
    join(folder.path, 'program.ts'),
    `import { Windlass } from '@windlass/client';
import { openFile } from '@windlass/client/node';
export const send = async (path: string) =>
  (await new Windlass({ url: 'http://127.0.0.1', user: 'ada', password: 'x' }).upload(await openFile(path), { resume: 'u' })).id;
`,
  );
  const page = ['--lib', 'es2022,dom,dom.iterable', '--types', ''];
  const bundler = ['--module', 'esnext', '--moduleResolution', 'bundler'];
  const node = ['--lib', 'es2022', '--types', 'node', '--module', 'nodenext'];
  const problems = await checkTypes(['use.ts', 'wrong.ts'], [...page, ...bundler]);
  const said = problems.match(/^wrong\.ts.*/gm) ?? [];
  expect(problems.match(/^\S.*/gm)).toEqual(said);
  for (const [n, wanted] of [
    /'cwdd' does not exist/,
    /No overload matches/,
    /'onProgres' does not exist/,
    /'"?a\/path"?'|'string'/,
    /'label' does not exist/,
  ].entries())
    expect(said[n]).toMatch(wanted);
  expect(said).toHaveLength(5);
  expect(await checkTypes(['program.ts'], [...node, '--skipLibCheck'])).toBe('');
});

test("the guide's script compiles, and what it reads of a result has a type", async () => {
  const [, script = ''] = /```js\n(import .*client';\n[\s\S]*?)```/.exec(guide) ?? [];
  expect(script).toContain('windlass.wait(job)');
  writeFileSync(
    join(folder.path, 'guided.ts'),
    `${script}
declare const job: string;
const status: number | undefined = result?.returncode;
const aids: string[] | undefined = result?.artifacts?.map(({ aid }) => aid);
const wrong: string | undefined = result?.returncode;
console.log(status, aids, wrong);
`,
  );
  const options = ['--lib', 'es2022,dom,dom.iterable', '--types', '', '--module', 'esnext'];
  const said = await checkTypes(['guided.ts'], [...options, '--moduleResolution', 'bundler']);
  expect(said.match(/^guided\.ts.*/gm)).toEqual([
    expect.stringMatching(/'number \| undefined' is not .*'string \| undefined'/),
  ]);
});

test('options are passed on as undefined, where that is no missing member either', async () => {
  writeFileSync(
    join(folder.path, 'passed.ts'),
    `import { type UploadOptions, Windlass } from '@windlass/client';
declare const text: string | undefined;
declare const count: number | undefined;
declare const yes: boolean | undefined;
declare const signal: AbortSignal | undefined;
const windlass = new Windlass({ url: '/', token: text, user: text, password: text, patience: count, onRetry: undefined, fetch: undefined });
export async function use(file: Blob, resume: string | undefined): Promise<void> {
  const session = await windlass.open('lab', { username: 'ada', password: text, name: text, answer: undefined, signal });
  session.run('make', { cwd: text, env: undefined, stdin: text, timeout: count, name: text, idempotencyKey: text, silence: count, from: { stdout: count }, signal });
  session.batch({ command: text, cwd: text, nodes: count, signal });
  await session.video({ pattern: text, images: undefined, contentType: undefined, fps: count, 'on-bad-frame': undefined, signal });
  await session.browse('~', { signal });
  session.readFile('a', { start: count, length: count, tag: text, onBegin: undefined, signal });
  await session.writeFile('a', file, { mode: count, parents: yes, exclusive: yes, attempts: count, resume: undefined, onProgress: undefined, signal });
  await session.info({ signal });
  await session.login({ password: text, answer: undefined, signal });
  await session.close({ signal });
  const run = windlass.follow('job', { from: undefined, silence: count, signal });
  await windlass.wait(await run.job, { onChange: undefined, signal });
  await windlass.cancel('job', { signal });
  windlass.jobs({ state: undefined, kind: undefined, name: text, limit: count, signal });
  windlass.rows('mid', 'aid', { sort: text, filter: undefined, columns: undefined, limit: count, signal });
  await windlass.rowsPage('mid', 'aid', { sort: text, tag: text, signal });
  const options: UploadOptions = { mid: 'mid', parser: 'csv', delimiter: text, header: yes, resume, aids: undefined, input: yes, partSize: count, onSent: undefined, signal };
  await windlass.upload(file, options);
  await windlass.upload(file, { mid: 'mid', parser: 'csv', resume: resume ?? null });
  await windlass.upload(file, resume ? { resume, signal } : { mid: 'mid', parser: 'csv' });
}
`,
  );
  const options = ['--lib', 'es2022,dom,dom.iterable', '--types', '', '--module', 'esnext'];
  const exact = ['--moduleResolution', 'bundler', '--exactOptionalPropertyTypes'];
  expect(await checkTypes(['passed.ts'], [...options, ...exact])).toBe('');
});

test('what the service takes an Idempotency-Key for is repeated under one, and nothing else', async () => {
  const { paths } = await readDocument();
  const posts = Object.entries(paths).flatMap(([path, { post }]) => (post ? [{ path, post }] : []));
  const taking = posts.filter(({ post }) => {
    const parameters = post.parameters as { name: string }[];
    return parameters.some(({ name }) => name === 'Idempotency-Key');
  });
  const pathsOf = (these: typeof posts) => these.map(({ path }) => path);
  expect(taking.length).toBeGreaterThan(5);
  // Of a host it covers the look at its keys, but a host is not added twice: that would look like a failure.
  const wanted = pathsOf(taking).filter(path => path !== '/api/hosts');
  expect(pathsOf(posts.filter(({ path }) => STARTS_WORK.test(path)))).toEqual(wanted);
});

describeStack(missingPrograms('sshd'), "the README's examples", form => {
  const { stack, client, sshd } = useRemoteStack(form);

  test('users log in through a development server with the lines for Vite, and not without', async () => {
    const readme = readFileSync(join(SOURCE, 'README.md'), 'utf8');
    const [, lines = ''] = /```js\n\/\/ vite\.config\.js\n([\s\S]*?)```/.exec(readme) ?? [];
    const printed = 'http://127.0.0.1:8080';
    expect(lines).toContain(printed);
    const config = join(folder.path, 'vite.config.js');
    writeFileSync(config, lines.replace(printed, stack.url));
    const { default: given } = (await import(config)) as { default: UserConfig };
    const logIn = async (server: UserConfig['server']) => {
      const shared = { configFile: false, root: folder.path, logLevel: 'silent' } as const;
      const vite = await createServer({ ...shared, server: { ...server, port: 0, ws: false } });
      try {
        await vite.listen();
        const { origin } = new URL(vite.resolvedUrls?.local[0] ?? '');
        const { username, password } = stack;
        return await fetch(`${origin}/api/login`, {
          method: 'POST',
          // As a browser sends it from a page of that server.
          headers: {
            'Content-Type': 'application/json',
            Origin: origin,
            'Sec-Fetch-Site': 'same-origin',
          },
          body: JSON.stringify({ username, password }),
        });
      } finally {
        await vite.close();
      }
    };
    expect((await logIn(given.server)).status).toBe(200);
    const refused = await logIn({ proxy: { '/api': stack.url } });
    expect([refused.status, await refused.json()]).toMatchObject([
      403,
      { hint: expect.stringContaining('let the proxy pass Host on') },
    ]);
  });

  test('the first one runs as it is printed', async () => {
    await addHost(client, sshd, { name: 'lab' });
    const token = { name: 'example', scope: 'write' };
    const made = await client.post<{ token: string }>('/api/users/-/tokens', token);
    const readme = readFileSync(join(SOURCE, 'README.md'), 'utf8');
    const [, example = ''] = /```js\n([\s\S]*?)```/.exec(readme) ?? [];
    writeFileSync(join(folder.path, 'example.js'), example);
    const key = join(folder.path, 'key');
    writeFileSync(key, sshd.privateKey);
    const env = {
      ...process.env,
      WINDLASS_URL: stack.url,
      WINDLASS_TOKEN: made.token,
      SSH_USER: sshd.username,
      SSH_KEY: key,
    };
    const { stdout, stderr } = await run(process.execPath, ['example.js'], {
      cwd: folder.path,
      env,
      timeout: 60_000,
    });
    expect(stderr).toBe('');
    expect(stdout).toBe(
      'stdout: step 1\nstdout: step 2\nstdout: step 3\n21 characters, and exit status 0\n',
    );
  });
});
