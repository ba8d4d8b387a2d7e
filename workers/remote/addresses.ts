import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import { WindlassError } from '../../shared/errors.ts';

const inner = new BlockList();
for (const [net, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['224.0.0.0', 3],
] as const) {
  inner.addSubnet(net, bits, 'ipv4');
}
for (const [net, bits] of [
  ['::', 128],
  ['::1', 128],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const) {
  inner.addSubnet(net, bits, 'ipv6');
}

/** Loopback, link-local, private, shared (RFC 6598), multicast and unspecified addresses, also as IPv4 mapped into IPv6. */
export function isInnerAddress(address: string): boolean {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped) return inner.check(mapped, 'ipv4');
  return inner.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

/**
 * Resolves the name once; the connection is made to the address that was checked, never to the name again.
 * Throws `host_not_allowed` for an inner address unless the host's entry grants them.
 */
export async function resolveHost(host: { address: string; private: boolean }): Promise<string> {
  const found = await lookup(host.address, { verbatim: true }).catch((cause: unknown) => {
    throw new WindlassError('remote_connection_failed', {
      detail: `The name ${host.address} could not be resolved.`,
      hint: "Check the address in the host's entry.",
      cause,
    });
  });
  if (!host.private && isInnerAddress(found.address)) {
    throw new WindlassError('host_not_allowed', {
      detail: `Host not allowed: ${host.address} is a loopback, link-local or private address.`,
      hint: 'A server administrator can allow that with "private": true in the host\'s entry.',
    });
  }
  return found.address;
}
