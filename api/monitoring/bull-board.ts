import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import type { Express } from 'express';
import { QUEUES } from '../../shared/jobs/catalog.ts';
import type { JobQueues } from '../../shared/jobs/queue.ts';
import { ReadOnlyAdapter } from './bull-board-adapter.ts';

/**
 * Bull Board on this process's connections to the queues, whose pages are at `page` below the path of PUBLIC_URL. Rejects when
 * the queue is unreachable.
 */
export async function openBoard(
  queues: JobQueues,
  { path, page }: { path: string; page: string },
): Promise<Express> {
  const open = await Promise.all(QUEUES.map(name => queues.open(name)));
  const adapter = new ReadOnlyAdapter(`${path}${page}`);
  createBullBoard({
    queues: open.map(
      queue =>
        new BullMQAdapter(queue, {
          readOnlyMode: true,
          allowRetries: false,
          // A queue entry links to its job.
          externalJobUrl: entry => ({
            href: `${path}/api/jobs/${String(entry.id).replace(/-\d+$/, '')}`,
            displayText: 'The job',
          }),
        }),
    ),
    serverAdapter: adapter,
    options: {
      uiConfig: {
        boardTitle: 'Windlass queues',
        boardLogo: { path: 'static/images/logo.svg', width: 24, height: 24 },
        hideDocsLink: true,
        // Workers have heartbeats; this would make the queue's server list all its clients at every poll.
        showWorkers: false,
        locale: { lng: 'en' },
      },
    },
  });
  return adapter.getRouter();
}
