import { afterAll, beforeAll, beforeEach, onTestFailed } from 'vitest';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { testKilledWorkers } from './killed-workers.ts';
import { testLostLinks } from './lost-links.ts';
import { testLostServers } from './lost-servers.ts';
import { type QueueKind, type Rig, startRig } from './rig.ts';

/** Every fault, on one stack with this queue. */
export function describeFaults(queue: QueueKind): void {
  const programs = queue === 'redis' ? (['sshd', 'redis-server'] as const) : (['sshd'] as const);
  describeUnless(missingPrograms(...programs), `faults, queued on ${queue}`, () => {
    let rig: Rig;
    beforeAll(async () => {
      rig = await startRig(queue);
    });
    afterAll(() => rig?.stack.stop());
    beforeEach(() => {
      const before = rig.stack.log().length;
      onTestFailed(() => console.error(quoteLog(rig.stack.log().slice(before))));
    });
    testKilledWorkers(() => rig);
    testLostServers(() => rig, queue);
    testLostLinks(() => rig);
  });
}

/** What the stack logged in this test: without it a fault that is hit once in a hundred runs is lost. */
export function quoteLog(log: string): string {
  const lines = log.trimEnd().split('\n').slice(-400);
  return `The stack logged:\n${lines.map(line => `| ${line}`).join('\n')}`;
}
