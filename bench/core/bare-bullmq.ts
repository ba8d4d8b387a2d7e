import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { type Contender, IN_FLIGHT, PAYLOAD, type Servers } from './contender.ts';

const QUEUE = 'bare';
/** Nothing is kept of a job. */
const OPTIONS = { removeOnComplete: true, removeOnFail: true };

const connect = (url: string) => new Redis(url, { maxRetriesPerRequest: null });

export async function openBareBullmq({ redisUrl }: Servers): Promise<Contender> {
  const connection = connect(redisUrl);
  const queue = new Queue(QUEUE, { connection });
  return {
    accept: () => queue.add('job', PAYLOAD, OPTIONS),
    isDrained: async () =>
      (await queue.getJobCountByTypes('waiting', 'active', 'prioritized', 'delayed')) === 0,
    close: async () => {
      await queue.close();
      connection.disconnect();
    },
  };
}

export async function workForBareBullmq({ redisUrl }: Servers): Promise<void> {
  const options = { connection: connect(redisUrl), concurrency: IN_FLIGHT };
  const keepNothing = { removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } };
  const worker = new Worker(QUEUE, async () => {}, { ...options, ...keepNothing });
  await worker.waitUntilReady();
}
