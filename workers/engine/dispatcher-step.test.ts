import { expect, test } from 'vitest';
import { createLog } from '../../shared/process/log.ts';
import { DispatcherStep } from './dispatcher-step.ts';

test('a step that fails again and again with one problem warns once, and again after it has worked', async () => {
  const levels: number[] = [];
  const write = (line: string) => void levels.push(JSON.parse(line).level);
  let problem: string | undefined = 'Redis cannot be reached';
  const step = new DispatcherStep(
    'unclaimed',
    createLog({ level: 'debug', name: 'test', write }),
    async () => {
      if (problem) throw new Error(problem);
    },
  );
  await step.run();
  await step.run();
  expect(levels).toEqual([40, 20]);
  problem = 'permission denied';
  await step.run();
  expect(levels).toEqual([40, 20, 40]);
  problem = undefined;
  await step.run();
  problem = 'permission denied';
  await step.run();
  expect(levels).toEqual([40, 20, 40, 40]);
});
