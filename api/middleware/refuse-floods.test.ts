import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { RequestRates } from '../concurrency/request-rates.ts';
import type { ApiContext } from '../context.ts';
import { createMessageClasses } from '../http/message-classes.ts';
import { OwnPasswordChanges } from '../identity/own-password-changes.ts';
import { newSecret } from '../identity/random-secrets.ts';
import { ApiMetrics } from '../monitoring/api-metrics.ts';
import { refuseFloods } from './refuse-floods.ts';

let close = () => {};
afterEach(() => close());

/** An application behind it that answers 204. */
async function serve(context: Partial<ApiContext>) {
  const app = express();
  app.use((_req, res) => void res.status(204).end());
  const all = {
    config: { LIMIT_REQUESTS: 2 },
    log: pino({ level: 'silent' }),
    metrics: new ApiMetrics(),
    passwords: { floods: { isEmpty: true } },
    passwordChanges: new OwnPasswordChanges(),
    requestRates: new RequestRates(2),
    ...context,
  };
  const listener = refuseFloods(app, all as ApiContext);
  const server = createServer(createMessageClasses(app), listener).listen(0, '127.0.0.1');
  close = () => void server.close();
  await new Promise(resolve => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  return async (...secrets: string[]) => {
    const Cookie = secrets.map(secret => `serviceauth=${secret}`).join('; ');
    return (await fetch(`http://127.0.0.1:${port}/api/projects`, { headers: { Cookie } })).status;
  };
}

test('knows a flood by its login, whatever cookies come beside that', async () => {
  const requestRates = new RequestRates(2);
  const ask = await serve({ requestRates });
  const login = newSecret();
  // One that is in this second when the requests come.
  const flood = () => {
    while (!requestRates.isRefused(login)) requestRates.exceed('ann', login);
  };
  expect(await ask(login)).toBe(204);
  for (const cookies of [[login], [login, newSecret()], [newSecret(), login]]) {
    flood();
    expect(await ask(...cookies)).toBe(429);
  }
  flood();
  expect(await ask(newSecret())).toBe(204);
});
