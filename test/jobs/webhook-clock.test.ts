import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { jobs, webhooks } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { createLog } from '../../shared/process/log.ts';
import { generateSealKeys, seal } from '../../shared/secrets/secrets.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { sendWebhooks } from '../../workers/webhooks/send-webhooks.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { waitFor } from '../harness/wait-for.ts';

const given = withDatabase('webhook_clock');
afterEach(() => {
  vi.useRealTimers();
});

/** A webhook with one delivery, and a worker's sending once that is wanted. */
async function makeWebhook(answer: (req: IncomingMessage, res: ServerResponse) => void) {
  const database = given.database();
  const { publicKey, privateKey } = await generateSealKeys();
  const [id, owner] = [newId(), newId()];
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const sealed = await seal(publicKey, { webhook: id, owner }, { destination: 'webhook', secret });
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  await database.db.insert(webhooks).values({ id, owner, url, sealed });
  const job = { id: newId(), kind: 'command', queue: 'remote', owner, payload: {} };
  await database.db.insert(jobs).values(job);
  await database.sql`update jobs set state = 'cancelled', finished = now() where id = ${job.id}`;

  const whileSending = async (work: () => Promise<unknown>) => {
    const stop = new AbortController();
    const config = readConfig({ SEAL_PRIVATE_KEYS: privateKey, WEBHOOK_PRIVATE: 'true' });
    const log = createLog({ level: 'silent', name: 'test' });
    const sending = sendWebhooks({ id: 'w', config, database, log, stopping: stop.signal });
    try {
      await work();
    } finally {
      stop.abort();
      await sending;
      server.close();
    }
  };
  return { id, sql: database.sql, whileSending };
}

test('the time of a message is that of the database, whatever the clock of its worker says', async () => {
  const times: number[] = [];
  const { whileSending } = await makeWebhook((req, res) => {
    times.push(Number(req.headers['webhook-timestamp']));
    res.writeHead(204).end();
  });
  const now = Date.now() / 1_000;
  vi.useFakeTimers({ toFake: ['Date'], now: (now + 3_600) * 1_000 });
  await whileSending(() => waitFor(() => times.length > 0, { what: 'the message to arrive' }));
  expect(Math.abs((times[0] ?? 0) - now)).toBeLessThan(120);
});

test('days for which nobody sent are no days of failing', async () => {
  let isUp = false;
  const { id, sql, whileSending } = await makeWebhook((_req, res) => {
    res.writeHead(isUp ? 204 : 503).end();
  });
  const before = await sql`select now() - interval '4 days' as at`.then(([row]) => row?.at);
  await sql`update webhook_deliveries set attempts = 1, first_tried = ${before}, last_tried = ${before}
    where webhook = ${id}`;
  await sql`update webhooks set failing_since = ${before}, served = ${before} where id = ${id}`;
  const read = async () => {
    const [row] = await sql<{ attempts: number; state: string; disabled: Date | null }[]>`
      select attempts, state, disabled from webhook_deliveries d join webhooks w on w.id = d.webhook
      where w.id = ${id}`;
    return row;
  };
  const untilTried = (attempts: number) =>
    waitFor(async () => (await read())?.attempts === attempts, { what: 'the attempt' });
  await whileSending(async () => {
    await untilTried(2);
    expect(await read()).toMatchObject({ state: 'pending', disabled: null });
    isUp = true;
    await sql`update webhook_deliveries set due = now() where webhook = ${id}`;
    await untilTried(3);
  });
  expect(await read()).toMatchObject({ state: 'delivered', disabled: null });
});
