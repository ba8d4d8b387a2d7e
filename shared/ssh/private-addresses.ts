import { BlockList, isIP } from 'node:net';

/** Subnets in CIDR notation, separated by spaces. */
function parseSubnets(...texts: string[]): BlockList {
  const list = new BlockList();
  for (const subnet of texts.join(' ').split(' ')) {
    const [net = '', bits] = subnet.split('/');
    list.addSubnet(net, Number(bits), isIP(net) === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}

const privateAddresses = parseSubnets(
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12',
  '192.0.0.0/24 192.168.0.0/16 198.18.0.0/15 224.0.0.0/3',
  '::1/128 64:ff9b:1::/48 2001::/32 fc00::/7 fe80::/10 fec0::/10 ff00::/8',
);

/** IPv6 prefixes whose addresses embed an IPv4 address from this bit on, and lead to it. */
const EMBEDDING_PREFIXES = [
  // IPv4-compatible, mapped (RFC 4291, 2.5.5) and translated (RFC 2765, 2.1).
  { list: parseSubnets('::/96 ::ffff:0:0/96 ::ffff:0:0:0/96'), from: 96 },
  // NAT64 (RFC 6052, 2.1).
  { list: parseSubnets('64:ff9b::/96'), from: 96 },
  // 6to4 (RFC 3056, 2).
  { list: parseSubnets('2002::/16'), from: 16 },
];

/**
 * Loopback, link-local, site-local, private, shared (RFC 6598), multicast, unspecified, benchmark (RFC 2544) and
 * protocol (RFC 6890) addresses. An IPv6 address that embeds an IPv4 one is judged by that. Teredo (RFC 4380) and
 * local-use NAT64 (RFC 8215) are private altogether.
 */
export function isPrivateAddress(address: string): boolean {
  if (isIP(address) === 4) return privateAddresses.check(address, 'ipv4');
  if (privateAddresses.check(address, 'ipv6')) return true;
  const prefix = EMBEDDING_PREFIXES.find(({ list }) => list.check(address, 'ipv6'));
  return prefix !== undefined && privateAddresses.check(readEmbedded(address, prefix.from), 'ipv4');
}

function readEmbedded(address: string, from: number): string {
  // A URL normalizes every group to hexadecimal. It allows no zone.
  const { hostname } = new URL(`http://[${address.replace(/%.*/, '')}]`);
  const [head = [], tail = []] = hostname
    .slice(1, -1)
    .split('::')
    .map(groups => groups.split(':').filter(Boolean));
  const zeros: string[] = Array(8 - head.length - tail.length).fill('0');
  const groups = [...head, ...zeros, ...tail].slice(from / 16, from / 16 + 2);
  return groups
    .map(group => Number.parseInt(group, 16))
    .flatMap(value => [value >> 8, value & 0xff])
    .join('.');
}
