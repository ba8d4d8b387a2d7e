import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from '../../../scripts/programs.ts';
import { awaitExit, endChild, endWithThisProcess } from '../../../servers/processes.ts';
import { makeTempDir } from '../files/temp-dir.ts';
import { waitFor } from '../wait-for.ts';

export interface TestNginx {
  url: string;
  /** What nginx has said of errors so far. */
  errors(): string;
  stop(): Promise<void>;
}

/**
 * Starts nginx on 127.0.0.1 with the configuration of docs/fleet.md, before the APIs on these ports. `patience`
 * replaces the time for which it waits for most answers.
 */
export async function startNginx(
  port: number,
  apis: [number, number],
  patience = '150s',
): Promise<TestNginx> {
  const nginx = runNginx(port, readServer(port, apis, patience));
  await waitFor(async () => (await fetch(`${nginx.url}/healthz`)).ok, {
    what: 'nginx to pass requests on',
    signal: nginx.signal,
  });
  return nginx;
}

/** Starts it with what docs/operations.md has for a service at the path /windlass. */
export async function startNginxAtPath(port: number, api: number): Promise<TestNginx> {
  const text = readBlock('operations', [['127.0.0.1:8080', `127.0.0.1:${api}`]]);
  const location = text.indexOf('location ');
  const server = `listen 127.0.0.1:${port}; ${text.slice(location)}`;
  const nginx = runNginx(port, `${text.slice(0, location)}\nserver { ${server} }`);
  await waitFor(async () => (await fetch(nginx.url)).status === 404, {
    what: 'nginx',
    signal: nginx.signal,
  });
  return nginx;
}

function runNginx(port: number, http: string): TestNginx & { signal: AbortSignal } {
  const program = findProgram('nginx');
  if (program === undefined) throw new Error('There is no nginx; see missingPrograms().');
  const directory = makeTempDir('nginx');
  const log = join(directory.path, 'error.log');
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path ${join(directory.path, name)};`,
  );
  const file = join(directory.path, 'nginx.conf');
  const config = [
    'daemon off;',
    // As root its workers would be another user's, who cannot write here.
    ...(process.getuid?.() === 0 ? ['user root;'] : []),
    `pid ${join(directory.path, 'nginx.pid')};`,
    `error_log ${log} warn;`,
    'events {}',
    `http {\naccess_log off;\n${paths.join('\n')}\n${http}\n}`,
  ];
  writeFileSync(log, '');
  writeFileSync(file, config.join('\n'));
  const child = spawn(program, ['-p', directory.path, '-c', file, '-e', log], { stdio: 'ignore' });
  endWithThisProcess(child);
  const errors = () => readFileSync(log, 'utf8');
  const ended = new AbortController();
  void awaitExit(child).then(() => ended.abort(new Error(`nginx ended:\n${errors()}`)));
  return {
    url: `http://127.0.0.1:${port}`,
    signal: ended.signal,
    errors,
    async stop() {
      await endChild(child, 2_000);
      directory.remove();
    },
  };
}

/** The block of the guide, with the ports of this test in the place of its own. */
function readServer(port: number, [first, second]: [number, number], patience: string): string {
  return readBlock('fleet', [
    ['proxy_read_timeout 150s;', `proxy_read_timeout ${patience};`],
    ['listen 80;', `listen 127.0.0.1:${port};`],
    ['server 127.0.0.1:8080 ', `server 127.0.0.1:${first} `],
    ['server 127.0.0.1:8081 ', `server 127.0.0.1:${second} `],
  ]);
}

/** The block for nginx of one of the docs, with these texts replaced. */
function readBlock(name: string, changes: [string, string][]): string {
  const doc = readFileSync(new URL(`../../../docs/${name}.md`, import.meta.url), 'utf8');
  let text = /```nginx\n([\s\S]+?)```/.exec(doc)?.[1] ?? '';
  for (const [from, to] of changes) {
    if (text.split(from).length !== 2) throw new Error(`docs/${name}.md lacks "${from}".`);
    text = text.replace(from, to);
  }
  return text;
}
