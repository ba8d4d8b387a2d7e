import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeTempDir } from '../test/harness/files/temp-dir.ts';
import { waitFor } from '../test/harness/wait-for.ts';

/** A program that is ready at once. */
const PROGRAM = `
import { beginProcess } from '../shared/service/lifecycle.ts';
const life = beginProcess('windlass-dev-test');
const timer = setInterval(() => {}, 1_000);
life.ready();
await life.stopped;
clearInterval(timer);
`;
/** Settings of a developer's other service, with which the embedded one is not started. */
const DOT_ENV = `DATABASE_URL=postgres://pooler.example/windlass
DATABASE_DIRECT_URL=postgres://database.example/windlass
REDIS_URL=redis://redis.example
S3_ENDPOINT=https://s3.example
S3_PUBLIC_ENDPOINT=https://s3.example
VIDEO_DELIVERY=redirect
`;
/** `windlass up` without a database. */
const SUPERVISOR = `
import { readConfig } from '../shared/settings/config.ts';
import { readDotEnv } from './service/read-dot-env.ts';
import { createLog } from '../shared/process/log.ts';
import { beginProcess } from '../shared/service/lifecycle.ts';
import { listEmbeddedProcesses } from './supervisor/process-specs.ts';
import { supervise } from './supervisor/supervisor.ts';
const { stopping } = beginProcess('windlass-dev-test');
readDotEnv(process.env);
readConfig(process.env);
const supervisor = supervise({
  groups: listEmbeddedProcesses(process.env, { workers: 2 }),
  log: createLog({ level: 'silent', name: 'windlass' }),
  signal: stopping,
  onReady: (name, pid) => process.send?.({ process: name, pid }),
});
supervisor.ready.then(() => console.log('Windlass is ready'));
await supervisor.stopped;
`;

const directory = makeTempDir('dev');
const checkout = join(import.meta.dirname, '..');
let child: ChildProcess;
let printed = '';

const put = (path: string, text: string) => {
  mkdirSync(dirname(join(directory.path, path)), { recursive: true });
  writeFileSync(join(directory.path, path), text);
};

/** Changes a file and returns the names of the restarted processes, which have new pids. */
async function save(path: string, text: string): Promise<string[]> {
  const before = printed.length;
  put(path, text);
  const find = () => /^Restarted in \d+ ms: (.*)$/m.exec(printed.slice(before))?.[1];
  await waitFor(() => find() !== undefined, { what: 'a restart', timeoutMs: 30_000 });
  const pids = [...(find() ?? '').matchAll(/([\w.]+) \((\d+)\)/g)];
  for (const [, , pid] of pids) expect(printed.slice(0, before)).not.toContain(`(${pid})`);
  return pids.map(([, name = '']) => name).sort();
}

beforeAll(async () => {
  for (const path of ['package.json', 'package-lock.json', 'tsconfig.json'])
    cpSync(join(checkout, path), join(directory.path, path));
  for (const folder of ['scripts', 'shared', 'cli', 'clients/typescript', 'console'])
    cpSync(join(checkout, folder), join(directory.path, folder), { recursive: true });
  symlinkSync(join(checkout, 'node_modules'), join(directory.path, 'node_modules'));
  put('.env', DOT_ENV);
  put('cli/main.ts', SUPERVISOR);
  put('api/main.ts', PROGRAM);
  put('workers/main.ts', `import '../shared/of-workers.ts';\n${PROGRAM}`);
  put('shared/of-workers.ts', 'export {};\n');
  child = spawn(process.execPath, ['scripts/run.mjs', 'dist/scripts/dev.js'], {
    cwd: directory.path,
    env: { PATH: process.env.PATH, DATA_DIR: join(directory.path, 'data') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', text => {
      printed += text;
    });
  await waitFor(() => printed.includes('Windlass is ready'), { what: 'it', timeoutMs: 30_000 });
});
afterAll(() => {
  child.kill('SIGKILL');
  directory.remove();
});

test('restarts the processes that can reach what was saved', async () => {
  expect(await save('workers/main.ts', `console.log(1);\n${PROGRAM}`)).toEqual([
    'worker.1',
    'worker.2',
  ]);
  put('api/new/file.ts', "console.log('new');\n");
  expect(await save('api/main.ts', `import './new/file.ts';\n${PROGRAM}`)).toEqual(['api']);
  expect(await save('api/new/file.ts', "console.log('newer');\n")).toEqual(['api']);
  const style = readFileSync(join(checkout, 'console/src/styles/tokens.css'), 'utf8');
  expect(await save('console/src/styles/tokens.css', `${style}html { color: red; }\n`)).toEqual([
    'api',
  ]);
  const log = readFileSync(join(checkout, 'shared/process/log.ts'), 'utf8');
  const all = ['api', 'worker.1', 'worker.2'];
  expect(await save('shared/process/log.ts', `${log}console.log('anew');\n`)).toEqual(all);
  const client = 'clients/typescript/src/api.ts';
  const api = readFileSync(join(checkout, client), 'utf8');
  expect(await save(client, `${api}console.log('anew');\n`)).toEqual(all);
  expect(printed.match(/Windlass is ready/g)).toHaveLength(3);
});

test('stack traces of all processes name lines of the sources', async () => {
  // The types before it do not stand in a bundle.
  const trace = (from: string) =>
    `type Name =\n  string;\nconst name: Name = '${from}';\nconsole.log(new Error(name).stack);\n${PROGRAM}`;
  for (const place of ['api', 'workers']) {
    await save(`${place}/main.ts`, trace(`of ${place}`));
    expect(printed).toMatch(new RegExp(`Error: of ${place}\\n +at .*/${place}/main\\.ts:4:13`));
  }
});

test('restarts nothing if a source does not compile, and everything if a process does not run', async () => {
  const before = printed.length;
  put('api/main.ts', 'const = ;');
  const said = () => printed.slice(before);
  const refused = () => said().includes('Nothing is restarted.');
  await waitFor(refused, { what: 'the refusal', timeoutMs: 30_000 });
  expect(said()).toContain('api/main.ts:1:7');
  put('api/main.ts', "console.log('ends at once'); process.exit(1);");
  await waitFor(() => said().includes('ends at once'), { what: 'it', timeoutMs: 30_000 });
  expect(await save('api/main.ts', PROGRAM)).toEqual(['api', 'worker.1', 'worker.2']);
});

test('ends everything on Ctrl-C', async () => {
  const pids = [...printed.matchAll(/\((\d+)\)/g)].map(([, pid]) => Number(pid));
  child.kill('SIGINT');
  expect(await once(child, 'exit')).toEqual([0, null]);
  for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});
