import { spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findProgram } from '../scripts/programs.ts';
import type { Client } from '../servers/api-client.ts';
import { findFreePort } from '../servers/free-port.ts';
import { endChild } from '../servers/processes.ts';
import { type ComparisonResult, compare } from './compare.ts';
import { countBody } from './count-body.ts';

const PIECE_BYTES = 1 << 20;
const PIECES = 200;
const CONNECTIONS = 4;

interface Options {
  client: Client;
  directory: string;
  /** The path of the video in the API. */
  path: string;
  /** The same video, of at least PIECE_BYTES. */
  file: string;
}

/** Compares pieces of a video, as a player asks for them, with nginx and the same file. */
export async function compareRanges(options: Options): Promise<ComparisonResult> {
  const { client, directory, path, file } = options;
  const nginx = await startNginx(directory, file);
  try {
    const authorization = { Authorization: client.authorization };
    return await compare({
      name: `pieces of ${PIECE_BYTES} bytes of a video, against nginx`,
      ours: () => measureRate(`${client.base}${path}`, authorization),
      baseline: () => measureRate(nginx.url, {}),
      unit: 'MB/s',
      target: 0.4,
    });
  } finally {
    await nginx.stop();
  }
}

async function measureRate(url: string, headers: Record<string, string>): Promise<number> {
  const began = performance.now();
  let left = PIECES;
  const read = async () => {
    while (left-- > 0) {
      const range = { ...headers, Range: `bytes=0-${PIECE_BYTES - 1}` };
      const { bytes } = await countBody(url, range, 206);
      if (bytes !== PIECE_BYTES) throw new Error(`${bytes} bytes came of ${url}`);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, read));
  return (PIECES * PIECE_BYTES) / 1e3 / (performance.now() - began);
}

/** Serves the file as its packaged configuration does, with sendfile. */
async function startNginx(directory: string, file: string) {
  const program = findProgram('nginx');
  if (program === undefined) throw new Error('There is no nginx; npm run setup:test installs it.');
  const folder = join(directory, 'nginx');
  mkdirSync(folder, { mode: 0o755 });
  copyFileSync(file, join(folder, 'video'));
  const port = await findFreePort();
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path ${join(folder, name)};`,
  );
  const config = `daemon off; worker_processes auto; pid ${join(folder, 'pid')};
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    events {}
    http { access_log off; sendfile on; tcp_nopush on; ${paths.join(' ')}
      server { listen 127.0.0.1:${port}; root ${folder}; } }`;
  writeFileSync(join(folder, 'nginx.conf'), config);
  const args = ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr'];
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  const url = `http://127.0.0.1:${port}/video`;
  while (child.exitCode === null && !(await fetch(url).catch(() => undefined))?.ok) await delay(20);
  return { url, stop: () => endChild(child, 2_000) };
}
