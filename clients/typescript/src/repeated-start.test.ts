import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { Windlass } from './windlass.ts';

type Answer = 'lost' | { status: number; body: object; headers?: Record<string, string> };

/** A client of a service that answers like this, one request after the other, and what it was asked for. */
async function withAnswers(
  answers: Answer[],
  use: (client: Windlass, keys: string[]) => Promise<void>,
): Promise<void> {
  const keys: string[] = [];
  const answer: RequestListener = (req, res) => {
    req.resume();
    keys.push(`${req.method} ${req.headers['idempotency-key']}`);
    const next = answers.shift() ?? 'lost';
    if (next === 'lost') return void req.socket.destroy();
    const { status, body, headers } = next;
    const type = `application/${status < 400 ? '' : 'problem+'}json`;
    res.writeHead(status, { 'Content-Type': type, ...headers }).end(JSON.stringify(body));
  };
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    await use(new Windlass({ url: `http://127.0.0.1:${port}`, token: 'x' }), keys);
  } finally {
    server.close().closeAllConnections();
  }
}

test('a command whose answer was lost has its job, also where it has failed since', async () => {
  const failed = {
    status: 400,
    body: { code: 'time_limit', detail: 'Time limit reached.' },
    headers: { Location: '/api/jobs/j2' },
  };
  await withAnswers(['lost', failed], async client => {
    const run = client.session('s').run('sleep 60', { timeout: 5, idempotencyKey: 'k' });
    expect(await run.job).toBe('j2');
  });
});

const cancelled: Answer = { status: 409, body: { code: 'cancelled', detail: 'It was cancelled.' } };
const opened: Answer = { status: 201, body: { sid: 's1' } };

test('a login that somebody has cancelled is not begun anew', async () => {
  await withAnswers([cancelled, opened], async (client, keys) => {
    await expect(client.open('host', { username: 'ada' })).rejects.toMatchObject({
      code: 'cancelled',
    });
    expect(keys).toHaveLength(1);
  });
  await withAnswers(['lost', cancelled, cancelled, opened], async (client, keys) => {
    await expect(client.open('host', { username: 'ada' })).rejects.toMatchObject({
      code: 'cancelled',
    });
    expect(keys).toHaveLength(3);
  });
});

test('a login that ended with its lost connection is begun anew, under another key', async () => {
  await withAnswers(['lost', cancelled, opened], async (client, keys) => {
    expect((await client.open('host', { username: 'ada' })).sid).toBe('s1');
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).not.toBe(keys[0]);
  });
});
