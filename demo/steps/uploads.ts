import { createHash } from 'node:crypto';
import { dim, expect, red } from '../console.ts';
import type { DemoContext } from '../context.ts';
import { uploadHalfAndDisconnect } from '../cut-upload.ts';

const PART_BYTES = 1 << 20;
/** Parts that are sent concurrently. */
const LANES = 4;

export interface Upload {
  uid: string;
  parts: Buffer[];
}

interface UploadRecord {
  state: 'open' | 'parsing' | 'done' | 'failed';
  /** `digest` is the SHA-256 in base64. */
  parts: { fid: number; pid: number; size: number; digest: string }[];
}

/** Starts an upload of one file, which becomes the table `aid` of the model. */
export async function openUpload(
  { client, out }: DemoContext,
  { mid, file, aid }: { mid: string; file: Buffer; aid: string },
): Promise<Upload> {
  const { id: uid } = await client.post<{ id: string }>('/api/uploads', {
    mid,
    input: true,
    parser: 'csv',
    aids: [aid],
  });
  // Parts are bytes: a boundary may split a row or a character.
  const count = Math.ceil(file.length / PART_BYTES);
  const parts = Array.from({ length: count }, (_, n) =>
    file.subarray(n * PART_BYTES, (n + 1) * PART_BYTES),
  );
  out.note(`upload ${uid}: ${file.length} bytes in ${count} parts`);
  return { uid, parts };
}

/** Sends 70 % of the parts, concurrently and out of order, then cuts the connection in the middle of the next one. */
export async function sendUntilCut(demo: DemoContext, upload: Upload): Promise<void> {
  const order = shuffle(upload.parts.length);
  const sent = Math.floor(order.length * 0.7);
  const progress = demo.out.progress('sending');
  const broken = order[sent] ?? 0;
  await sendParts(demo, upload, { order: order.slice(0, sent), before: 0, progress });
  await uploadHalfAndDisconnect({
    url: `${demo.client.base}${partPath(upload, broken)}`,
    authorization: demo.client.authorization,
    bytes: upload.parts[broken] ?? Buffer.alloc(0),
  });
  demo.out.note(`${red('cut')} ${dim(`the connection, half-way through part ${broken}`)}`);
}

/** Finishes the upload too early: the response lists the missing parts, and nothing is parsed. */
export async function finishTooEarly({ client, out }: DemoContext, upload: Upload): Promise<void> {
  const answer = await client.fetch(`/api/uploads/${upload.uid}/finished`, {
    method: 'POST',
    body: JSON.stringify({ uploaded: [upload.parts.length] }),
  });
  const { missing } = (await answer.json()) as { missing?: [number, number][] };
  expect(answer.status === 400, `400 was expected, it is ${answer.status}`);
  expect(missing && missing.length > 0, 'the response does not list the missing parts');
  out.note(`${answer.status} ${answer.statusText}`);
  out.note(`"missing": ${JSON.stringify(missing)}`);
}

/** Resumes the upload like a restarted client: lists the stored parts and sends the others. */
export async function resumeUpload(demo: DemoContext, upload: Upload): Promise<void> {
  const { client, out } = demo;
  const { parts } = await client.get<UploadRecord>(`/api/uploads/${upload.uid}`);
  for (const { pid, digest } of parts)
    expect(digest === digestOf(upload.parts[pid]), `part ${pid} is not what was sent`);
  out.note(`${parts.length} parts are stored, with the right SHA-256`);
  const there = new Set(parts.map(part => part.pid));
  const order = upload.parts.map((_, pid) => pid).filter(pid => !there.has(pid));
  const progress = out.progress('sending the rest');
  await sendParts(demo, upload, { order, before: there.size, progress });
}

/** Finishes the upload. Returns the id of its parse job. */
export async function finishUpload(
  { client }: DemoContext,
  { uid, parts }: Upload,
): Promise<string> {
  const { job } = await client.post<{ job: string }>(`/api/uploads/${uid}/finished`, {
    uploaded: [parts.length],
  });
  return job;
}

async function sendParts(
  demo: DemoContext,
  upload: Upload,
  {
    order,
    before,
    progress,
  }: { order: number[]; before: number; progress: (part: number) => void },
): Promise<void> {
  let there = before;
  const queue = order.values();
  const lane = async () => {
    for (const pid of queue) {
      await sendPart(demo, upload, pid);
      progress(++there / upload.parts.length);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

async function sendPart({ client }: DemoContext, upload: Upload, pid: number): Promise<void> {
  const part = upload.parts[pid];
  const answer = await client.fetch(partPath(upload, pid), {
    method: 'PUT',
    body: new Uint8Array(part ?? []),
    headers: {
      'Content-Type': 'application/octet-stream',
      'Content-Digest': `sha-256=:${digestOf(part)}:`,
    },
  });
  const text = await answer.text();
  expect(answer.ok, `part ${pid} was answered ${answer.status}: ${text.slice(0, 200)}`);
}

const partPath = ({ uid }: Upload, pid: number) => `/api/uploads/${uid}/files/0/parts/${pid}`;

const digestOf = (bytes: Uint8Array = new Uint8Array()) =>
  createHash('sha256').update(bytes).digest('base64');

/** The numbers below count in a fixed other order: steps of a prime. */
function shuffle(count: number): number[] {
  const step = [7, 11, 13].find(prime => count % prime !== 0) ?? 1;
  return Array.from({ length: count }, (_, n) => (3 + n * step) % count);
}
