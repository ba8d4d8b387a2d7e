import { expect, test } from 'vitest';
import { isInnerAddress, resolveHost } from './addresses.ts';

test('loopback, private, link-local, shared and multicast addresses are inner ones', () => {
  for (const address of [
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    'fc00::1',
    'fdff::1',
    'fe80::1',
    'ff02::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::FFFF:10.0.0.1',
    '::ffff:a9fe:a9fe',
  ])
    expect([address, isInnerAddress(address)]).toEqual([address, true]);
  for (const address of [
    '1.1.1.1',
    '100.63.255.255',
    '100.128.0.1',
    '172.15.0.1',
    '172.32.0.1',
    '192.167.0.1',
    '2001:db8::1',
    '::ffff:8.8.8.8',
    '::ffff:808:808',
  ])
    expect([address, isInnerAddress(address)]).toEqual([address, false]);
});

test('an inner address is given only where the entry grants it', async () => {
  expect(await resolveHost({ address: '127.0.0.1', private: true })).toBe('127.0.0.1');
  for (const address of ['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '::1'])
    await expect(resolveHost({ address, private: false }), address).rejects.toMatchObject({
      code: 'host_not_allowed',
    });
  expect(await resolveHost({ address: '192.0.2.1', private: false })).toBe('192.0.2.1');
});
