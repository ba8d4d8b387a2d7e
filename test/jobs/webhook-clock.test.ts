import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { jobs, webhooks } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { createLog } from '../../shared/process/log.ts';
import { generateSealKeys, seal } from '../../shared/secrets/secrets.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { sendWebhooks } from '../../workers/webhooks/send-webhooks.ts';
import { withDatabase } from '../harness/migrated-database.ts';
import { waitFor } from '../harness/wait-for.ts';

const given = withDatabase('webhook_clock');
afterEach(() => {
  vi.useRealTimers();
});

test('the time of a message is that of the database, whatever the clock of its worker says', async () => {
  const database = given.database();
  const { publicKey, privateKey } = await generateSealKeys();
  const [id, owner] = [newId(), 'alice'];
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const sealed = await seal(publicKey, { webhook: id, owner }, { place: 'webhook', secret });
  const times: number[] = [];
  const server = createServer((req, res) => {
    times.push(Number(req.headers['webhook-timestamp']));
    res.writeHead(204).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  await database.db.insert(webhooks).values({ id, owner, url, sealed });
  const job = { id: newId(), kind: 'command', queue: 'remote', owner, payload: {} };
  await database.db.insert(jobs).values(job);
  await database.db.update(jobs).set({ state: 'cancelled', finished: new Date() });

  const now = Date.now() / 1_000;
  vi.useFakeTimers({ toFake: ['Date'], now: (now + 3_600) * 1_000 });
  const stop = new AbortController();
  const config = readConfig({ SEAL_PRIVATE_KEYS: privateKey, WEBHOOK_PRIVATE: 'true' });
  const log = createLog({ level: 'silent', name: 'test' });
  const sending = sendWebhooks({ id: 'w', config, database, log, stopping: stop.signal });
  try {
    await waitFor(() => times.length > 0, { what: 'the message to arrive' });
  } finally {
    stop.abort();
    await sending;
    server.close();
  }
  expect(Math.abs((times[0] ?? 0) - now)).toBeLessThan(120);
});
