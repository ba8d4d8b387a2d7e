import type { Request } from 'express';
import { expect, test } from 'vitest';
import type { UserRecord } from '../../shared/database/api-columns.ts';
import { type Account, accountTag, checkUserVersion } from './account.ts';

const row = { version: 3, created: new Date(0), stored: 12 } as Account;
const request = (given: string) =>
  ({ get: (name: string) => (name === 'If-Match' ? given : undefined) }) as Request;
const check = (given: string) => checkUserVersion(request(given), row as UserRecord);

test('a write depends on the record, not on what is counted for it', () => {
  for (const stored of [0, 12, 2 ** 50]) check(`"other", ${accountTag({ ...row, stored }, 7)}`);
  check(accountTag(row).replace(/"$/, '-gzip"'));
  for (const wrong of [accountTag({ ...row, version: 4 }), '"3-0.x"', '"3-0..1"', '"3-1.2"'])
    expect(() => check(wrong)).toThrow('changed');
});

test('tags that no record has take no time', () => {
  for (const given of [
    `"3${'.1'.repeat(16_000)}`,
    `"${'1'.repeat(32_000)}`,
    '"1.1",'.repeat(5_000),
  ]) {
    const begun = process.cpuUsage();
    expect(() => check(given)).toThrow('changed');
    const { user, system } = process.cpuUsage(begun);
    // Linear time is less than 10 ms; quadratic took 300 ms and more.
    expect((user + system) / 1_000).toBeLessThan(100);
  }
});
