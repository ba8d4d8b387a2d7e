import { expect, test } from 'vitest';
import { EventRates } from './event-rates.ts';

test('a user has so many bytes of events in a minute, whatever others send', () => {
  const rates = new EventRates(100_000);
  for (let n = 0; n < 10; n++) rates.count('one', 9_700);
  expect(() => rates.count('one', 9_700)).toThrow('More than 100000 bytes of events in a minute.');
  rates.count('another', 9_700);
});

test('0 is no limit', () => {
  const rates = new EventRates(0);
  for (let n = 0; n < 1_000; n++) rates.count('one', 8_000);
});
