import { expect, test } from 'vitest';
import { isPrivateAddress } from '../../shared/ssh/private-addresses.ts';
import { resolveHost } from './resolve-host.ts';

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
    'fe80::1%eth0',
    'fec0::1',
    '192.0.0.192',
    '198.19.255.255',
  ])
    expect([address, isPrivateAddress(address)]).toEqual([address, true]);
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
    expect([address, isPrivateAddress(address)]).toEqual([address, false]);
});

test('an IPv6 address that leads to an IPv4 one is judged by it', () => {
  const carriers = {
    compatible: (high: string, low: string) => `::${high}:${low}`,
    mapped: (high: string, low: string) => `::ffff:${high}:${low}`,
    translated: (high: string, low: string) => `::ffff:0:${high}:${low}`,
    nat64: (high: string, low: string) => `64:ff9b::${high}:${low}`,
    '6to4': (high: string, low: string) => `2002:${high}:${low}::1`,
  };
  for (const carry of Object.values(carriers)) {
    for (const [high, low] of [
      ['7f00', '1'],
      ['a00', '1'],
      ['a9fe', 'a9fe'],
      ['c0a8', '101'],
      ['e000', '1'],
    ] as const)
      expect([carry(high, low), isPrivateAddress(carry(high, low))]).toEqual([
        carry(high, low),
        true,
      ]);
    expect([carry('808', '808'), isPrivateAddress(carry('808', '808'))]).toEqual([
      carry('808', '808'),
      false,
    ]);
  }
  for (const address of [
    '::127.0.0.1',
    '::192.168.1.1',
    '64:FF9B::10.0.0.1',
    '64:ff9b:0:0:0:0:169.254.169.254',
    '64:ff9b::a00:1%eth0',
    '2002:a00:1:2:3:4:5:6',
    '2002:7f00:1::',
    // As such: what a network's own NAT64 or a Teredo relay leads to is not known.
    '64:ff9b:1::808:808',
    '64:ff9b:1:ffff::1',
    '2001:0:808:808::f7f7:f7f7',
  ])
    expect([address, isPrivateAddress(address)]).toEqual([address, true]);
  for (const address of [
    '::8.8.8.8',
    '64:ff9b::8.8.8.8',
    '2002:808:808::',
    // Neighbours of the prefixes.
    '64:ff9a::a00:1',
    '64:ff9b:0:0:0:1:a00:1',
    '64:ff9b:2::1',
    '2001:1::1',
    '2003:a00:1::1',
  ])
    expect([address, isPrivateAddress(address)]).toEqual([address, false]);
});

test('an inner address is given only where the entry grants it', async () => {
  expect(await resolveHost({ address: '127.0.0.1', private: true })).toEqual(['127.0.0.1']);
  for (const address of ['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '::1'])
    await expect(resolveHost({ address, private: false }), address).rejects.toMatchObject({
      code: 'host_not_allowed',
    });
  expect(await resolveHost({ address: '192.0.2.1', private: false })).toEqual(['192.0.2.1']);
});
