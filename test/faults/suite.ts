import { afterAll, beforeAll, beforeEach, onTestFailed } from 'vitest';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { type QueueKind, type RunningStack, startFaultStack } from './fault-host.ts';
import { testKilledWorkers } from './killed-workers.ts';
import { testLostLinks } from './lost-links.ts';
import { testLostServers } from './lost-servers.ts';

/** The faults of processes, servers and, once, of links, on one stack with this queue. */
export function describeFaults(queue: QueueKind): void {
  const programs = queue === 'redis' ? (['sshd', 'redis-server'] as const) : (['sshd'] as const);
  describeUnless(missingPrograms(...programs), `faults, queued on ${queue}`, () => {
    let service: RunningStack;
    beforeAll(async () => {
      service = await startFaultStack(queue);
    });
    afterAll(() => service?.stack.stop());
    beforeEach(() => {
      const before = service.stack.log().length;
      onTestFailed(() => console.error(quoteLog(service.stack.log().slice(before))));
    });
    testKilledWorkers(() => service);
    testLostServers(() => service, queue);
    // None of them reaches the queue.
    if (queue === 'postgres') testLostLinks(() => service);
  });
}

/** What the stack logged in this test: without it a fault that is hit once in a hundred runs is lost. */
export function quoteLog(log: string): string {
  const lines = log.trimEnd().split('\n').slice(-400);
  return `The stack logged:\n${lines.map(line => `| ${line}`).join('\n')}`;
}
