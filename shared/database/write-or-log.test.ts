import { expect, test } from 'vitest';
import { createLog } from '../process/log.ts';
import { writeOrLog } from './write-or-log.ts';

test('what fails is told, and while the database is unreachable only to who looks for it', async () => {
  const lines: string[] = [];
  const log = createLog({ level: 'info', name: 'test', write: line => lines.push(line) });
  await writeOrLog(log, 'writing a use', Promise.resolve());
  const readOnly = { code: '25006', severity: 'ERROR' };
  for (const outage of [{ code: 'CONNECTION_ENDED' }, readOnly])
    await writeOrLog(
      log,
      'writing a use',
      Promise.reject(Object.assign(new Error('it ended'), outage)),
    );
  expect(lines).toEqual([]);
  await writeOrLog(log, 'writing a use', Promise.reject(new Error('permission denied')));
  expect(lines.map(line => JSON.parse(line))).toMatchObject([
    { msg: 'writing a use failed', err: { message: 'permission denied' } },
  ]);
});
