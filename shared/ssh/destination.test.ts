import { expect, test } from 'vitest';
import { destinationDigest } from './destination.ts';

const hop = { address: 'a.example', port: 22, keys: ['ssh-ed25519 AAAA', 'ssh-rsa BBBB'] };
const jump = { address: 'j.example', port: 2222, keys: ['ssh-ed25519 CCCC'] };

test('a destination is the address, port and set of keys of every hop, in their order', () => {
  const digests = [
    [hop],
    [{ ...hop, address: 'b.example' }],
    [{ ...hop, port: 23 }],
    [{ ...hop, keys: ['ssh-ed25519 AAAA'] }],
    [{ ...hop, keys: [...hop.keys, 'ssh-ed25519 CCCC'] }],
    [{ ...hop, keys: ['ssh-ed25519 AAAA ssh-rsa BBBB'] }],
    [jump, hop],
    [hop, jump],
    [],
  ].map(destinationDigest);
  expect(new Set(digests).size).toBe(digests.length);
  const same = { ...hop, keys: [...hop.keys, ...hop.keys].reverse() };
  expect(destinationDigest([same])).toBe(digests[0]);
});
