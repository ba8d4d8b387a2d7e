import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readConfig } from '../../shared/settings/config.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { EventLog } from './event-log.ts';

const config = readConfig({});
const line = (path: string) => ({ event: { user: 'u', path, query: '' }, requestId: 'r' });

test('an event is one line', () => {
  const file = join(makeTempDir('event-log').path, 'events');
  const fd = openSync(file, 'w');
  expect(new EventLog(config, fd).record(line('zoom/in'))).toBe(true);
  closeSync(fd);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject(line('zoom/in'));
});

test('what a full disk does not take is told of, and not kept without end', () => {
  const fd = openSync('/dev/full', 'w');
  const events = new EventLog(config, fd);
  const long = line('x'.repeat(8_000));
  const before = process.memoryUsage().heapUsed + process.memoryUsage().external;
  for (let n = 0; n < 20_000; n++) expect(events.record(long)).toBe(false);
  const after = process.memoryUsage().heapUsed + process.memoryUsage().external;
  // 160 MB were lost.
  expect(after - before).toBeLessThan(64 << 20);
  closeSync(fd);
});
