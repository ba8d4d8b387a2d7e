import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  createReadStream,
  createWriteStream,
  mkdtempSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '../servers/api-client.ts';
import type { SshHost } from '../servers/ssh-host.ts';
import { startStack } from '../servers/stack.ts';
import { type ComparisonResult, compare } from './compare.ts';
import { countBody } from './count-body.ts';
import { OpenSsh } from './open-ssh.ts';
import { addHost, openSession } from './session.ts';

const BYTES = 2 ** 30;
/** Of the comparison with the program `ssh`. */
const CAT_BYTES = 300_000_000;
/** The output of the warm-up. */
const FIRST_BYTES = 2 ** 26;
/** The polling interval of a client that found nothing new. */
const NO_NEWS_MS = 20;

interface Options {
  host: SshHost;
  /** The services' data are stored here. */
  directory: string;
}

/**
 * Compares 1 GB of output, stored and fetched, with a script that does the same with plain ssh2 and a file. Also compares
 * that script with one that stores nothing, which shows the cost of the disk.
 */
export async function compareBulk(options: Options): Promise<ComparisonResult[]> {
  const ssh = new OpenSsh(options.host, options.directory);
  const file = join(options.directory, 'bulk');
  const store = () => measureRate(BYTES, () => storeAndFetch(ssh, file));
  const results: ComparisonResult[] = [];
  for (const [agent, target] of [
    [false, 0.8],
    [true, 0.5],
  ] as const) {
    results.push(
      await compare({
        name: `1 GB of output stored and fetched, ${agent ? 'with' : 'without'} an agent, against plain ssh2 and a file`,
        ours: () => measureOurs(options, { agent, bytes: BYTES, command: write(BYTES) }),
        baseline: store,
        unit: 'MB/s',
        target,
      }),
    );
  }
  results.push(
    await compare({
      name: 'the script alone, storing and fetching, against one that only counts what it reads',
      ours: store,
      baseline: () => measureRate(BYTES, () => ssh.read(write(BYTES), countBytes)),
      unit: 'MB/s',
    }),
  );
  return results;
}

/**
 * Compares 300 MB of output, stored and fetched, with `ssh host cat > file`, which neither syncs nor reads again what it
 * wrote.
 */
export async function compareCat(options: Options): Promise<ComparisonResult> {
  const ssh = new OpenSsh(options.host, options.directory);
  const source = join(options.directory, 'source');
  const copy = join(options.directory, 'copy');
  const cat = `cat ${source}`;
  writeFileSync(source, randomBytes(CAT_BYTES), { mode: 0o644 });
  await ssh.openControl();
  try {
    return await compare({
      name: '300 MB of output stored and fetched, with an agent, against `ssh host cat > file` with ControlMaster',
      ours: () => measureOurs(options, { agent: true, bytes: CAT_BYTES, command: cat }),
      baseline: () =>
        measureRate(CAT_BYTES, async () => {
          await ssh.saveOverControl(cat, copy);
          return statSync(copy).size;
        }),
      unit: 'MB/s',
      target: 0.5,
    });
  } finally {
    await ssh.closeControl();
    for (const file of [source, copy]) rmSync(file, { force: true });
  }
}

const write = (bytes: number) => `head -c ${bytes} /dev/zero`;

/** Stores the output in a file, synced to the disk, and reads that. */
async function storeAndFetch(ssh: OpenSsh, file: string): Promise<number> {
  await ssh.read(write(BYTES), channel =>
    pipeline(channel, createWriteStream(file, { flush: true, highWaterMark: 4 << 20 })),
  );
  const bytes = await countBytes(createReadStream(file, { highWaterMark: 1 << 18 }));
  rmSync(file);
  return bytes;
}

async function countBytes(source: Readable): Promise<number> {
  let bytes = 0;
  for await (const piece of source) bytes += (piece as Buffer).length;
  return bytes;
}

/** MB/s. */
async function measureRate(expected: number, work: () => Promise<number>): Promise<number> {
  const began = performance.now();
  const bytes = await work();
  if (bytes !== expected) throw new Error(`${bytes} bytes came`);
  return bytes / 1e6 / ((performance.now() - began) / 1_000);
}

/** Starts a service for each measurement, because earlier output would fill disk and memory. */
async function measureOurs(
  { host, directory }: Options,
  { agent, bytes, command }: { agent: boolean; bytes: number; command: string },
): Promise<number> {
  const data = mkdtempSync(join(directory, 'bulk-'));
  chmodSync(data, 0o711);
  const { client, stop } = await startStack({
    directory: data,
    environment: { PATH: process.env.PATH },
    settings: { LIMIT_REQUESTS: '0' },
  });
  try {
    await addHost(client, 'host', host);
    const sid = await openSession(client, 'host', host, { agent });
    await runAndFetch(client, sid, write(FIRST_BYTES));
    return await measureRate(bytes, () => runAndFetch(client, sid, command));
  } finally {
    await stop();
    rmSync(data, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

/** Fetches the output while the command still runs. Returns its length in bytes. */
async function runAndFetch(client: Client, sid: string, command: string): Promise<number> {
  const { base, authorization } = client;
  const { id } = await client.post<{ id: string }>(
    '/api/remotes/launch',
    { sid, command },
    { Prefer: 'respond-async' },
  );
  for (let bytes = 0; ; ) {
    const url = `${base}/api/jobs/${id}/output?stream=stdout&offset=${bytes}`;
    const answer = await countBody(url, { Authorization: authorization });
    bytes += answer.bytes;
    if (answer.headers['output-complete'] === 'true') return bytes;
    if (answer.bytes === 0) await delay(NO_NEWS_MS);
  }
}
