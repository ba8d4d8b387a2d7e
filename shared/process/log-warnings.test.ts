import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { createLog } from './log.ts';
import { logWarnings } from './log-warnings.ts';

test('what packages and Node warn of are lines of the log', async () => {
  const { warn, error } = console;
  const listeners = process.listeners('warning');
  onTestFinished(() => {
    Object.assign(console, { warn, error });
    process.removeAllListeners('warning');
    for (const listener of listeners) process.on('warning', listener);
  });
  const lines: { level: number; msg: string; err?: { message: string } }[] = [];
  const write = (line: string) => lines.push(JSON.parse(line));
  logWarnings(createLog({ level: 'info', name: 'test', secrets: ['hidden-word'], write }));
  console.warn('IMPORTANT! It is %s: hidden-word.', 'so');
  console.error(new Error('broken'));
  const warned = once(process, 'warning');
  process.emitWarning('deprecated');
  await warned;
  expect(lines).toMatchObject([
    { level: 40, msg: 'IMPORTANT! It is so: [redacted].' },
    { level: 50, msg: expect.stringMatching(/^Error: broken\n/) },
    { level: 40, msg: 'a warning of Node', err: { message: 'deprecated' } },
  ]);
});
