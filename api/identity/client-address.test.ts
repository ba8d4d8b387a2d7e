import { expect, test } from 'vitest';
import { normalizeAddress } from './client-address.ts';

test('IPv4 is the address, in any notation', () => {
  for (const address of [
    '192.0.2.7',
    '::ffff:192.0.2.7',
    '::FFFF:c000:207',
    '0:0:0:0:0:ffff:192.0.2.7',
  ])
    expect([address, normalizeAddress(address)]).toEqual([address, '192.0.2.7']);
});

test('IPv6 is its /64', () => {
  for (const address of ['2001:db8:0:1::1', '2001:0DB8::1:ffff:ffff:ffff:ffff', '2001:db8:0:1::'])
    expect([address, normalizeAddress(address)]).toEqual([address, '2001:db8:0:1::/64']);
  expect(normalizeAddress('2001:db8:0:2::1')).toBe('2001:db8:0:2::/64');
  expect(normalizeAddress('fe80::1%eth0')).toBe('fe80:0:0:0::/64');
  expect(normalizeAddress('::1')).toBe('0:0:0:0::/64');
  expect(normalizeAddress('1:2:3:4:5:6:7:8')).toBe('1:2:3:4::/64');
});

test('invalid addresses are one', () => {
  for (const text of ['', 'unknown', '1.2.3', '1.2.3.4:80', '[::1]', '1.2.3.4 admin'])
    expect(normalizeAddress(text)).toBe('unknown');
});
