import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { startRedis, type TestRedis } from '../../test/harness/servers/redis.ts';
import { startTcpProxy, type TcpProxy } from '../../test/harness/servers/tcp-proxy.ts';
import { startTlsServer } from '../../test/harness/servers/tls-server.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { createLog } from '../process/log.ts';
import { JobQueues, type QueueEntry } from './queue.ts';
import { QueueTakesNothing, QueueTlsFault } from './queue-on-redis.ts';

const log = createLog({ level: 'silent', name: 'test' });
const entry = (id: string): QueueEntry => ({ id, epoch: 1 });

describeUnless(missingPrograms('redis-server'), 'queues on a Redis', () => {
  let first: TestRedis;
  let second: TestRedis;
  let proxy: TcpProxy;
  let queues: JobQueues;
  beforeAll(async () => {
    [first, second] = await Promise.all([startRedis(), startRedis()]);
    proxy = await startTcpProxy(first);
    queues = new JobQueues({
      databaseUrl: '',
      redisUrl: `redis://127.0.0.1:${proxy.port}`,
      log,
    });
  });
  beforeEach(() => untilItTakes(() => queues.check()));
  afterAll(async () => {
    await queues?.close();
    await proxy?.stop();
    await Promise.all([first?.stop(), second?.stop()]);
  });

  const untilItTakes = (call: () => Promise<unknown>) =>
    waitFor(
      () =>
        call().then(
          () => true,
          () => false,
        ),
      { what: 'the queue to take what it is sent' },
    );

  test('a full one is named as such', async () => {
    await first.send('config', ['set', 'maxmemory', 1]);
    try {
      await expect(queues.check()).rejects.toThrow(QueueTakesNothing);
      await expect(queues.add('remote', [entry('full')])).rejects.toThrow('OOM');
    } finally {
      await first.send('config', ['set', 'maxmemory', 0]);
    }
    await queues.check();
  });

  test('one that may drop entries is told, where it tells', async () => {
    expect(await queues.evictionPolicy()).toBeUndefined();
    await first.send('config', ['set', 'maxmemory-policy', 'allkeys-lru']);
    try {
      // Without a limit nothing is ever evicted.
      expect(await queues.evictionPolicy()).toBeUndefined();
      await first.send('config', ['set', 'maxmemory', '1gb']);
      expect(await queues.evictionPolicy()).toBe('allkeys-lru');
      await first.send('acl', ['setuser', 'default', '-info']);
      expect(await queues.evictionPolicy()).toBeUndefined();
    } finally {
      await first.send('acl', ['setuser', 'default', '+info']);
      await first.send('config', ['set', 'maxmemory-policy', 'noeviction']);
      await first.send('config', ['set', 'maxmemory', 0]);
    }
  });

  describeUnless(missingPrograms('openssl'), 'by TLS', () => {
    test('one whose certificate is not trusted is told with the reason', async () => {
      const secure = await startTlsServer(first);
      onTestFinished(() => secure.stop());
      const redisUrl = `rediss://127.0.0.1:${secure.port}`;
      const distrusting = new JobQueues({ databaseUrl: '', redisUrl, log });
      onTestFinished(() => distrusting.close());
      const told = await waitFor(
        async () => {
          const error = await distrusting.check().catch((thrown: unknown) => thrown);
          return error instanceof QueueTlsFault ? error : undefined;
        },
        { what: 'the reason' },
      );
      expect(told.message).toMatch(
        /its certificate is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\).*NODE_EXTRA_CA_CERTS/,
      );
    });
  });

  test('after a failover each process goes on with the new one', async () => {
    const seen: string[] = [];
    const worker = queues.worker('remote', 1, async ({ id }) => seen.push(id));
    worker.on('error', () => {});
    try {
      await queues.add('remote', [entry('before')]);
      await waitFor(() => seen.includes('before'), { what: 'the worker to be told' });
      // Its connections stay open, and it takes no writes any more.
      await first.send('replicaof', ['127.0.0.1', second.port]);
      await expect(queues.check()).rejects.toThrow(QueueTakesNothing);
      proxy.leadTo(second.port);
      await untilItTakes(() => queues.add('remote', [entry('after')]));
      await waitFor(() => seen.includes('after'), { what: 'the worker to be told by the new one' });
      await queues.check();
    } finally {
      await worker.close();
    }
  });
});
