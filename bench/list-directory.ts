import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import ssh2 from 'ssh2';
import type { Client } from '../servers/api-client.ts';
import type { SshHost } from '../servers/ssh-host.ts';
import { type ComparisonResult, compare, type Side } from './compare.ts';

const ENTRIES = 100_000;
/** Contains the first entries: the JSON before them is shorter. */
const FIRST_BYTES = 1_000;

/**
 * Compares listing a folder of 100,000 files over HTTP, in a warm session, with readdir() of plain ssh2 over an open
 * connection. Also measures the time to the first entries.
 */
export async function compareBrowse(options: {
  client: Client;
  sid: string;
  host: SshHost;
  /** The folder is created in it. */
  directory: string;
}): Promise<{ passed: boolean }[]> {
  const { client, sid, host } = options;
  const folder = join(options.directory, 'many');
  mkdirSync(folder);
  for (let n = 0; n < ENTRIES; n++)
    closeSync(openSync(join(folder, `frame-${String(n).padStart(7, '0')}.png`), 'w'));
  const firsts: number[] = [];
  const ours: Side = async () => {
    const began = performance.now();
    const answer = await client.fetch(`/api/remotes/${sid}/browse${folder}`, { method: 'POST' });
    let first: number | undefined;
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    for await (const piece of answer.body ?? []) {
      pieces.push(piece as Uint8Array);
      bytes += (piece as Uint8Array).length;
      if (bytes >= FIRST_BYTES) first ??= performance.now() - began;
    }
    const total = performance.now() - began;
    const { names } = JSON.parse(Buffer.concat(pieces).toString()) as { names: string[] };
    if (names.length !== ENTRIES) throw new Error(`${names.length} entries came`);
    firsts.push(first ?? total);
    return total;
  };
  const plain = await connect(host);
  try {
    const compared: ComparisonResult = await compare({
      name: `a folder of ${ENTRIES} files listed, against plain ssh2`,
      ours,
      baseline: () => list(plain, folder),
      unit: 'ms',
      better: 'less',
      target: 3,
    });
    return [compared, reportFirstEntries(firsts)];
  } finally {
    plain.end();
  }
}

/** The slowest one decides: each must take at most a second. */
function reportFirstEntries(firsts: number[]): { passed: boolean } {
  const longest = Math.max(...firsts);
  const passed = longest <= 1_000;
  console.log(
    `${passed ? 'ok  ' : 'MISS'} its first entries: after ${Math.round(longest)} ms at the longest of ${firsts.length} (at most 1000)`,
  );
  return { passed };
}

function connect({ port, username, privateKey }: SshHost): Promise<ssh2.Client> {
  const client = new ssh2.Client();
  return new Promise((resolve, reject) => {
    client.once('ready', () => resolve(client.setNoDelay(true))).once('error', reject);
    client.connect({ host: '127.0.0.1', port, username, privateKey });
  });
}

function list(client: ssh2.Client, folder: string): Promise<number> {
  const began = performance.now();
  return new Promise((resolve, reject) => {
    client.sftp((opening, sftp) => {
      if (opening) return reject(opening);
      sftp.readdir(folder, (error, found) => {
        sftp.end();
        if (error) reject(error);
        else if (found.length !== ENTRIES) reject(new Error(`${found.length} entries came`));
        else resolve(performance.now() - began);
      });
    });
  });
}
