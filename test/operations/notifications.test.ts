import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../shared/database/connect.ts';
import { Notifications } from '../../shared/database/notifications.ts';
import { createLog } from '../../shared/process/log.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { startTcpProxy } from '../harness/servers/tcp-proxy.ts';
import { waitFor } from '../harness/wait-for.ts';

const given = withDatabase('notifications');
const log = createLog({ level: 'silent', name: 'test' });
const ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A process that was started beside this one. */
async function join(
  url: string,
  listen: (notifications: Notifications) => void,
): Promise<{ notifications: Notifications; database: Database }> {
  const database = openDatabase(url);
  const notifications = new Notifications(database, log);
  ends.push(async () => {
    await notifications.close();
    await database.close();
  });
  listen(notifications);
  await notifications.listen();
  return { notifications, database };
}

const listenAsWorker = (notifications: Notifications) => {
  for (const topic of ['cancel', 'session', 'offer'] as const) notifications.on(topic, () => {});
};

/** A way to the database on which notifications are counted: each is a message of the type A. */
async function countNotifications(): Promise<{ url: string; count: () => number }> {
  const target = new URL(given.url);
  const sockets = new Set<Socket>();
  let count = 0;
  const server: Server = createServer(client => {
    const upstream = connect(Number(target.port), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => [client, upstream].map(one => one.destroy()));
    }
    client.pipe(upstream).pipe(client);
    let unread = Buffer.alloc(0);
    upstream.on('data', chunk => {
      unread = Buffer.concat([unread, chunk]);
      while (unread.length >= 5 && unread.length > unread.readInt32BE(1)) {
        if (unread[0] === 'A'.charCodeAt(0)) count++;
        unread = unread.subarray(1 + unread.readInt32BE(1));
      }
    });
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  ends.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: given.url.replace(`:${target.port}/`, `:${port}/`), count: () => count };
}

test('an idle process is told nothing by ten others', async () => {
  const { url, count } = await countNotifications();
  const { notifications } = await join(url, listenAsWorker);
  for (let i = 0; i < 10; i++) await join(given.url, listenAsWorker);
  // It hears itself: notifications do arrive on this way.
  let echoed = false;
  notifications.on('cancel', id => {
    echoed ||= id === 'itself';
  });
  notifications.publish('cancel', 'itself');
  await waitFor(() => echoed, { what: 'a notification' });
  const before = count();
  expect(before).toBeGreaterThan(0);
  // Longer than between two signs of life.
  await delay(6_000);
  expect(count() - before).toBe(0);
});

test('a worker is told of no jobs and no users, until it waits for a job', async () => {
  const { url, count } = await countNotifications();
  const worker = await join(url, listenAsWorker);
  const told: string[] = [];
  const api = await join(given.url, notifications => {
    notifications.on('job', id => told.push(`api: ${id}`));
    notifications.on('user', name => told.push(`api: ${name}`));
  });
  worker.notifications.on('cancel', id => told.push(`worker: ${id}`));
  api.notifications.publish('user', 'alice');
  for (let i = 0; i < 5; i++) api.notifications.publish('job', `job${i}`);
  await waitFor(() => told.includes('api: job4') && told.includes('api: alice'), {
    what: 'notifications of the API',
  });
  api.notifications.publish('cancel', 'last');
  await waitFor(() => told.includes('worker: last'), { what: 'a notification of the worker' });
  expect(count()).toBe(1);

  const wait = (id: string) => {
    const seen = new Set<string>();
    const ignore = worker.notifications.on('job', job => seen.add(job));
    return { seen, ignore, id };
  };
  const first = wait('mine');
  await waitFor(
    () => {
      api.notifications.publish('job', first.id);
      return first.seen.has(first.id);
    },
    { what: 'the job that the worker waits for' },
  );
  first.ignore();
  const isLeft = async () => {
    const before = count();
    told.length = 0;
    api.notifications.publish('job', 'other');
    await waitFor(() => told.includes('api: other'), { what: 'the notification of the API' });
    api.notifications.publish('cancel', 'again');
    await waitFor(() => told.includes('worker: again'), { what: 'one of the worker' });
    return count() - before === 1;
  };
  await waitFor(isLeft, { what: 'the worker to be told of no jobs', timeoutMs: 20_000 });
});

test('a silent connection is noticed, and what was listened to is heard again', async () => {
  const { hostname, port } = new URL(given.url);
  const proxy = await startTcpProxy({ host: hostname, port: Number(port) });
  ends.push(() => proxy.stop());
  const heard = new Set<string>();
  let missed = 0;
  await join(given.url.replace(`:${port}/`, `:${proxy.port}/`), notifications => {
    notifications.on('cancel', id => heard.add(id));
    notifications.onMissed(() => missed++);
  });
  const other = await join(given.url, () => {});
  const tell = (id: string) =>
    waitFor(
      () => {
        other.notifications.publish('cancel', id);
        return heard.has(id);
      },
      { what: `notification ${id}`, timeoutMs: 40_000, intervalMs: 100 },
    );
  await tell('before');
  proxy.forget();
  await tell('after');
  expect(missed).toBe(1);
});

test('what could not be sent is sent later, as much as a process keeps', async () => {
  const told: string[] = [];
  await join(given.url, notifications => {
    notifications.on('user', id => told.push(id));
  });
  const { database } = await join(given.url, () => {});
  let isBroken = true;
  let refused = 0;
  const sql = new Proxy(database.sql, {
    apply(target, self, args) {
      if (!isBroken) return Reflect.apply(target, self, args);
      refused++;
      return Promise.reject(new Error('write CONNECTION_CLOSED'));
    },
  });
  const sender = new Notifications({ ...database, sql }, log);
  ends.push(() => sender.close());
  sender.publish('user', 'mallory');
  await waitFor(() => refused > 0, { what: 'the first try' });
  isBroken = false;
  await waitFor(() => told.includes('mallory'), { what: 'the second try', timeoutMs: 5_000 });
  isBroken = true;
  refused = 0;
  for (let n = 0; n < 30_000; n++) sender.publish('user', `user${n}`);
  await waitFor(() => refused > 0, { what: 'a try that fails' });
  isBroken = false;
  sender.publish('user', 'last');
  await waitFor(() => told.includes('last'), { what: 'the last one', timeoutMs: 20_000 });
  expect(told.length).toBeLessThan(11_000);
});
