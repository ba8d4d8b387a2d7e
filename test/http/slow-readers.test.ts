import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';
import { afterEach, expect, test } from 'vitest';
import type { ApiContext } from '../../api/context.ts';
import { followOutput } from '../../api/jobs/streaming/follow-output.ts';
import { OutputReader } from '../../api/jobs/streaming/output-reader.ts';
import { sendOutput } from '../../api/jobs/streaming/send-output.ts';
import { segments } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import type { JobSummary } from '../../shared/jobs/job-record.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { waitFor } from '../harness/wait-for.ts';

const given = withDatabase('slow-readers');
const ended: (() => unknown)[] = [];
afterEach(() => {
  for (const end of ended.splice(0).reverse()) end();
});

/** More than the kernel takes for a client that does not read. */
const LENGTH = 32 << 20;

test('clients that take nothing of an output hold little, and go on where they were', async () => {
  const { job, objects, objectsOpen, bytes } = await storeOutput();
  const reads = new OutputReader({ db: given.database().db, objects });
  const answers: ServerResponse[] = [];
  const port = await serve(async (_req, res) => {
    answers.push(res);
    const span = { job, stream: 'stdout', from: 0, until: LENGTH } as const;
    await sendOutput(reads, res as Response, span);
  });
  const clients = Array.from({ length: 24 }, () => ask(port));
  await untilStill(answers, clients, objectsOpen);
  for (const answer of answers) expect(answer.writableLength).toBeLessThan(128 << 10);
  for (const other of clients.slice(1)) other.destroy();
  expect((await bodyOf(clients[0])).equals(bytes)).toBe(true);
});

test('those of a file of a host hold no object open, and go on where they were', async () => {
  const { job, objects, objectsOpen, bytes } = await storeOutput();
  const api = { database: given.database(), objects } as unknown as ApiContext;
  const row = { ...job, stdoutBytes: LENGTH, state: 'succeeded', finished: new Date() } as const;
  const answers: ServerResponse[] = [];
  const port = await serve(async (_req, res) => {
    answers.push(res);
    const output = followOutput(api, row as JobSummary, new AbortController().signal);
    await pipeline(output, res).catch(() => {});
  });
  const clients = Array.from({ length: 24 }, () => ask(port));
  await untilStill(answers, clients, objectsOpen);
  for (const other of clients.slice(1)) other.destroy();
  expect((await bodyOf(clients[0])).equals(bytes)).toBe(true);
});

/** A job with an output of one object. */
async function storeOutput() {
  const { db } = given.database();
  const job = { id: newId(), owner: 'one' } as JobSummary;
  const folder = join(given.path, job.id);
  const objects = new FileStore(folder);
  const bytes = Buffer.alloc(LENGTH);
  for (let at = 0; at < LENGTH; at += 4) bytes.writeUInt32LE(at, at);
  const object = `output/${job.id}/${newId()}`;
  await objects.put(object, bytes);
  await db.insert(segments).values({ job: job.id, stream: 1, start: 0, length: LENGTH, object });
  const objectsOpen = () =>
    readdirSync('/proc/self/fd').filter(fd => linkOf(fd).startsWith(folder)).length;
  return { job, objects, objectsOpen, bytes };
}

const untilStill = (answers: ServerResponse[], clients: Socket[], objectsOpen: () => number) =>
  waitFor(
    () =>
      answers.length === clients.length &&
      answers.every(answer => answer.writableNeedDrain) &&
      objectsOpen() === 0,
    { what: 'all to stand still, with nothing being read', timeoutMs: 30_000 },
  );

/** What comes once this client reads. */
async function bodyOf(client: Socket | undefined): Promise<Buffer> {
  const received: Buffer[] = [];
  client?.on('data', piece => received.push(piece)).resume();
  await once(client as Socket, 'end');
  const whole = Buffer.concat(received);
  return whole.subarray(whole.indexOf('\r\n\r\n') + 4);
}

async function serve(
  answer: (req: IncomingMessage, res: ServerResponse) => Promise<void>,
): Promise<number> {
  const server = createServer((req, res) => {
    res.setHeader('Content-Length', LENGTH);
    void answer(req, res);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ended.push(() => server.close().closeAllConnections());
  return (server.address() as AddressInfo).port;
}

/** A client that reads only when it is resumed. */
function ask(port: number): Socket {
  const socket = connect(port, '127.0.0.1').pause();
  socket.on('error', () => {});
  ended.push(() => socket.destroy());
  socket.write('GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n');
  return socket;
}

function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return '';
  }
}
