import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client } from '../../servers/api-client.ts';
import { type ComparisonResult, compare } from '../compare.ts';
import { beginUpload, makeModel } from './begin-upload.ts';
import type { PeerName } from './peer.ts';
import { type PartRequest, sendParts } from './send-parts.ts';

const PROGRAM = fileURLToPath(new URL('./peer.js', import.meta.url));

interface Options {
  client: Client;
  file: Buffer;
  directory: string;
}

/** Compares the parts of a file, until the last one is confirmed, with what other servers take of the same bytes. */
export async function compareParts(options: Options): Promise<ComparisonResult[]> {
  const plain = await comparePeer(options, {
    name: 'parts of a file, against the simplest server that hashes, writes and syncs',
    peer: 'plain',
    makeRequest: (origin, part) => ({ url: `${origin}/${part}`, method: 'PUT', status: 200 }),
    target: 1,
  });
  const tus = await comparePeer(options, {
    name: 'parts of a file, against @tus/server, which does not hash or sync',
    peer: 'tus',
    makeRequest: (origin, _, { length }) => ({
      url: `${origin}/files`,
      method: 'POST',
      headers: {
        'Tus-Resumable': '1.0.0',
        'Upload-Length': String(length),
        'Content-Type': 'application/offset+octet-stream',
      },
      status: 201,
    }),
    target: 0.9,
  });
  return [plain, tus];
}

interface Peer {
  name: string;
  peer: PeerName;
  makeRequest: (origin: string, part: number, bytes: Buffer) => PartRequest;
  target: number;
}

async function comparePeer(
  { client, file, directory }: Options,
  { name, peer, makeRequest, target }: Peer,
): Promise<ComparisonResult> {
  const mid = await makeModel(client);
  const folder = mkdtempSync(join(directory, `${peer}-`));
  const server = fork(PROGRAM, [peer, folder]);
  const [port] = await once(server, 'message');
  const result = await compare({
    name,
    ours: async () => {
      const { uid, partUrl, headers } = await beginUpload(client, mid, 'blob');
      const rate = await measureRate(file, part => ({
        url: partUrl(part),
        method: 'PUT',
        headers,
        status: 200,
      }));
      await client.delete(`/api/uploads/${uid}`);
      return rate;
    },
    baseline: async () => {
      const origin = `http://127.0.0.1:${port}`;
      const rate = await measureRate(file, (part, bytes) => makeRequest(origin, part, bytes));
      for (const name of readdirSync(folder)) rmSync(join(folder, name));
      return rate;
    },
    unit: 'MB/s',
    target,
  });
  const ended = once(server, 'exit');
  server.disconnect();
  await ended;
  return result;
}

async function measureRate(
  file: Buffer,
  makeRequest: (part: number, bytes: Buffer) => PartRequest,
): Promise<number> {
  const began = performance.now();
  await sendParts(file, makeRequest);
  return file.length / 1e3 / (performance.now() - began);
}
