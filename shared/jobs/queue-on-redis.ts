import { Queue, Worker } from 'bullmq';
import { Redis, type RedisOptions } from 'ioredis';
import type { Logger } from '../process/log.ts';
import { findTlsFault } from '../process/tls-faults.ts';
import type { QueueBackend } from './queue-backend.ts';

/** The server answers, and lets nobody in with this URL. */
export class QueueRefusal extends Error {
  constructor(cause: Error) {
    super(`Redis refuses the login of REDIS_URL (${cause.message})`, { cause });
  }
}

/** It answers, and TLS with it fails: until an operator does something about it. */
export class QueueTlsFault extends Error {
  /** Names no address. */
  readonly reason: string;
  constructor({ reason, remedy }: { reason: string; remedy: string }, cause: Error) {
    super(`Redis cannot be reached: ${reason}. ${remedy}.`, { cause });
    this.reason = reason;
  }
}

/** What Redis answers then. */
const REFUSED = /\b(NOAUTH|WRONGPASS|NOPERM)\b|invalid password/i;

/** The server answers, and is full or a replica. */
export class QueueTakesNothing extends Error {
  constructor(cause: Error) {
    super(`Redis takes no entries (${cause.message})`, { cause });
  }
}

/** What Redis answers then; MISCONF where it cannot write to its disk. */
const TAKES_NOTHING = /\b(READONLY|OOM|MISCONF)\b/;
/** What a primary answers that became a replica, over connections that are older. */
const isReadOnly = ({ message }: Error) => message.includes('READONLY');

/** How long what check() writes is kept. */
const CHECK_KEPT_MS = 60_000;

/** BullMQ on Redis. */
export function onRedis(url: string, log: Logger): QueueBackend {
  const connect = (options: RedisOptions) => {
    const redis = new Redis(url, {
      // With it a silent connection was detected after 16 s, without it not within 90 s.
      socketTimeout: 20_000,
      connectTimeout: 5_000,
      keepAlive: 5_000,
      retryStrategy: times => Math.min(times * 100, 2_000),
      ...options,
    });
    redis.on('error', () => {});
    return redis;
  };
  // After a failover REDIS_URL leads to the new primary. What failed is not sent again: while there is none, it would pile up.
  const producer = connect({ maxRetriesPerRequest: 1, reconnectOnError: isReadOnly });
  let refusal: Error | undefined;
  let lastError: Error | undefined;
  producer.on('error', error => {
    lastError = error;
    refusal = explainRefusal(error);
  });
  producer.on('ready', () => {
    refusal = undefined;
    void readEvictionPolicy(producer).then(policy => {
      if (policy === undefined) return;
      const what = `Redis may drop entries of the queue: its maxmemory-policy is ${policy}`;
      log.warn({ policy }, `${what}; set it to noeviction`);
    });
  });
  const connections = [producer];
  return {
    refusal: () => refusal,
    write: () =>
      producer.set('bull:check', '', 'PX', CHECK_KEPT_MS).catch((error: Error) => {
        throw TAKES_NOTHING.test(error.message) ? new QueueTakesNothing(error) : error;
      }),
    evictionPolicy: () => readEvictionPolicy(producer),
    queue: name => {
      if (refusal) throw refusal;
      if (producer.status !== 'ready')
        throw new Error('Redis cannot be reached', { cause: lastError });
      return new Queue(name, { connection: producer, streams: { events: { maxLen: 100 } } });
    },
    worker: (name, process, options) => {
      // What failed is sent again (2), as where the connection breaks: BullMQ would wait for 15 s.
      const reconnectOnError = (error: Error) => isReadOnly(error) && 2;
      const connection = connect({ maxRetriesPerRequest: null, reconnectOnError });
      connections.push(connection);
      return new Worker(name, process, { ...options, connection });
    },
    close: () => {
      for (const connection of connections) connection.disconnect();
    },
  };
}

async function readEvictionPolicy(redis: Redis): Promise<string | undefined> {
  // Another command would wait for a connection.
  if (redis.status !== 'ready') return undefined;
  // A server may forbid it.
  const memory = await redis.info('memory').catch(() => '');
  // Without a limit nothing is evicted, whatever the policy.
  if (/^maxmemory:0\s/m.test(memory)) return undefined;
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1];
  return policy === 'noeviction' ? undefined : policy;
}

function explainRefusal(error: Error): Error | undefined {
  if (REFUSED.test(error.message)) return new QueueRefusal(error);
  const tls = findTlsFault(error);
  return tls && new QueueTlsFault(tls, error);
}
