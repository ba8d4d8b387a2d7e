import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import {
  digestField,
  makeModel,
  partPath,
  putPart,
  sha256,
  type UploadRecord,
} from '../harness/clients/uploads.ts';
import { isEnded, type Job } from '../harness/hosts/remote.ts';
import { Random } from '../harness/random.ts';
import { pidsNamed, type RunningStack, startFaultStack } from './fault-host.ts';
import { insist, isServing } from './insist.ts';
import { isFull, withSeed } from './settings.ts';
import { quoteLog } from './suite.ts';

const UPLOADS = isFull ? 50 : 8;
/** Clients at work side by side. */
const LANES = isFull ? 8 : 4;
const FILES = 2;
const LARGE = isFull ? 5 * 2 ** 30 : 512 << 20;
/** What the API may need more than before, in bytes, for a part of any size. */
const ROOM = 160 << 20;

/** Uploads while everything is killed: what was finished arrives bit for bit, and nothing else is ever seen. */
export function describeUploadFaults(): void {
  describe('faults, uploads', () => {
    let service: RunningStack;
    beforeAll(async () => {
      service = await startFaultStack('postgres');
    });
    afterAll(() => service?.stack.stop());
    beforeEach(() => {
      const before = service.stack.log().length;
      onTestFailed(() => console.error(quoteLog(service.stack.log().slice(before))));
    });

    test(
      'uploads arrive whole, or are not to be seen, while API, workers and Postgres are killed',
      { timeout: 180_000 + UPLOADS * 30_000 },
      () =>
        withSeed(async random => {
          const { mid } = await makeModel(service.client);
          const stop = new AbortController();
          const killing = killAll(service, random, stop.signal);
          const plans = Array.from({ length: UPLOADS }, (_, n) => planUpload(n, random));
          try {
            const queue = plans.values();
            const lane = async () => {
              for (const plan of queue) await carryUpload(service, mid, plan);
            };
            await Promise.all(Array.from({ length: LANES }, lane));
          } finally {
            stop.abort();
            await killing;
          }
          await isServing(service.client);
          await expectArtifacts(service, mid, plans);
        }),
    );

    test('a large part is taken at flat memory', {
      timeout: 60_000 + LARGE / 5_000,
    }, async () => {
      const { client, stack } = service;
      const { mid } = await makeModel(client);
      const { id: uid } = await begin(service, mid, ['large']);
      const [pid = 0] = pidsNamed(stack, 'windlass-api');
      const before = peakOf(pid);
      const hash = createHash('sha256');
      const status = await send(service, partPath(uid, 0, 0), count(LARGE, hash));
      expect(status).toBe(200);
      const { parts } = await client.get<UploadRecord>(`/api/uploads/${uid}`);
      expect(parts).toEqual([{ fid: 0, pid: 0, size: LARGE, digest: hash.digest('base64') }]);
      expect(pidsNamed(stack, 'windlass-api')).toEqual([pid]);
      expect(peakOf(pid) - before).toBeLessThan(ROOM);
      await client.delete(`/api/uploads/${uid}`);
    });
  });
}

interface Plan {
  aids: string[];
  /** The parts of each file. */
  files: Uint8Array[][];
  /** Left without being finished: nothing of it may be seen. */
  isGivenUp: boolean;
}

/** Parts of very different sizes; every fourth upload is never finished. */
function planUpload(n: number, random: Random): Plan {
  const parts = () =>
    Array.from({ length: 1 + Math.floor(random.between(0, 6)) }, () =>
      drawBytes(Math.floor(10 ** random.between(0, 6.3)), random),
    );
  return {
    aids: Array.from({ length: FILES }, (_, i) => `upload-${n}-${i}`),
    files: Array.from({ length: FILES }, parts),
    isGivenUp: n % 4 === 3,
  };
}

function drawBytes(length: number, random: Random): Uint8Array {
  const bytes = new Uint32Array(Math.ceil(length / 4));
  for (let i = 0; i < bytes.length; i++) bytes[i] = random.next() * 2 ** 32;
  return new Uint8Array(bytes.buffer, 0, length);
}

/** What a careful client does: after any failure it asks what is there, and goes on from that. */
async function carryUpload(service: RunningStack, mid: string, plan: Plan): Promise<void> {
  const { id: uid } = await begin(service, mid, plan.aids);
  const wanted = plan.files.flatMap((parts, fid) =>
    parts.map((bytes, pid) => ({ fid, pid, bytes })),
  );
  const left = plan.isGivenUp ? wanted.slice(1) : wanted;
  const job = await insist('an upload', async () => {
    const record = await service.client.get<UploadRecord>(`/api/uploads/${uid}`);
    if (record.job) return record.job;
    const there = new Map(record.parts.map(part => [`${part.fid}/${part.pid}`, part.digest]));
    const missing = left.filter(
      ({ fid, pid, bytes }) => there.get(`${fid}/${pid}`) !== sha256(bytes),
    );
    const answers = await Promise.allSettled(missing.map(part => sendPart(service, uid, part)));
    if (answers.some(answer => answer.status === 'rejected')) return undefined;
    if (plan.isGivenUp) return 'none';
    return finish(service, uid, plan);
  });
  if (plan.isGivenUp) return;
  const ended = await insist('the parse', async () => {
    const found = await service.client.get<Job>(`/api/jobs/${job}`);
    return isEnded(found) ? found : undefined;
  });
  expect(ended).toMatchObject({ state: 'succeeded', error: null });
}

async function sendPart(
  { client }: RunningStack,
  uid: string,
  { fid, pid, bytes }: { fid: number; pid: number; bytes: Uint8Array },
): Promise<void> {
  const headers = { 'Content-Digest': digestField(bytes) };
  const answer = await putPart(client, partPath(uid, fid, pid), bytes, headers);
  const text = await answer.text();
  // Nothing but what is unreachable may stand in the way of a right part.
  expect([200, 503]).toContain(answer.status);
  if (answer.status !== 200) throw new Error(text);
}

async function finish(
  { client }: RunningStack,
  uid: string,
  plan: Plan,
): Promise<string | undefined> {
  const answer = await client.fetch(`/api/uploads/${uid}/finished`, {
    method: 'POST',
    headers: { 'Idempotency-Key': uid },
    body: JSON.stringify({ uploaded: plan.files.map(parts => parts.length) }),
  });
  const { job } = (await answer.json()) as { job?: string };
  // All parts were answered 200: none may be missing.
  expect([202, 409, 503]).toContain(answer.status);
  return answer.status === 202 ? job : undefined;
}

const begin = ({ client }: RunningStack, mid: string, aids: string[]) =>
  insist('an upload to begin', () =>
    client.post<{ id: string }>('/api/uploads', { mid, input: true, parser: 'blob', aids }),
  );

/** Each time that the service works again, at a moment that the seed draws, something is killed. */
async function killAll(
  { stack, client }: RunningStack,
  random: Random,
  stop: AbortSignal,
): Promise<void> {
  // Draws of its own: how many there are depends on the machine.
  const own = new Random(Math.floor(random.between(1, 2 ** 31)));
  for (let kills = 0; kills < UPLOADS; kills++) {
    await isServing(client, stop);
    await delay(own.between(100, 2_000), undefined, { signal: stop }).catch(() => {});
    const name = own.pick(['windlass-api', 'windlass-worker', 'postgres']);
    if (stop.aborted) return;
    if (pidsNamed(stack, name).length > 0) stack.kill(name);
  }
}

async function expectArtifacts(service: RunningStack, mid: string, plans: Plan[]): Promise<void> {
  for (const { aids, files, isGivenUp } of plans) {
    for (const [fid, aid] of aids.entries()) {
      const path = `/api/models/${mid}/files/${aid}`;
      const bytes = await insist(aid, async () => {
        const answer = await service.client.fetch(path);
        if (answer.status >= 500) throw new Error(await answer.text());
        expect([aid, answer.status]).toEqual([aid, isGivenUp ? 404 : 200]);
        return new Uint8Array(await answer.arrayBuffer());
      });
      const expected = Buffer.concat(files[fid] ?? []);
      if (!isGivenUp) expect([aid, sha256(bytes)]).toEqual([aid, sha256(expected)]);
    }
  }
}

/** Makes `total` bytes that are not all alike. */
function* count(total: number, hash: { update(bytes: Buffer): unknown }): Generator<Buffer> {
  const piece = Buffer.alloc(1 << 20, randomUUID());
  for (let left = total; left > 0; left -= piece.length) {
    piece.writeUInt32LE(left / piece.length, 0);
    const bytes = Buffer.from(piece.subarray(0, Math.min(left, piece.length)));
    hash.update(bytes);
    yield bytes;
  }
}

async function send(
  { client }: RunningStack,
  path: string,
  bytes: Iterable<Buffer>,
): Promise<number> {
  const put = request(`${client.base}${path}`, {
    method: 'PUT',
    headers: { Authorization: client.authorization, 'Content-Length': LARGE },
  });
  const status = new Promise<number>((resolve, reject) => {
    put.once('error', reject).once('response', response => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
  });
  await pipeline(Readable.from(bytes, { highWaterMark: 2 }), put);
  return status;
}

/** The most memory that a process ever held, in bytes (proc(5), VmHWM). */
function peakOf(pid: number): number {
  const line = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1]) * 1_024;
}
