import { isIP } from 'node:net';
import type { Request } from 'express';

/**
 * The address that failed logins are counted for: an IPv4 address, or the /64 of an IPv6 address, which usually belongs to
 * one household or machine. Behind TRUST_PROXY proxies it is the address that the first of them saw.
 */
export function clientAddress(req: Request): string {
  return normalizeAddress(req.ip ?? '');
}

/** All invalid addresses become one, so that invented ones share a count. Node's URL parser replaces a library here. */
export function normalizeAddress(text: string): string {
  const [address = ''] = text.split('%', 1);
  if (isIP(address) === 4) return address;
  if (isIP(address) !== 6) return 'unknown';
  const groups = expand(address);
  // ::ffff:0:0/96 is IPv4 on a dual-stack socket (RFC 4291, 2.5.5.2).
  if (groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff') {
    const bytes = groups.slice(6).flatMap(group => {
      const value = Number.parseInt(group, 16);
      return [value >> 8, value & 255];
    });
    return bytes.join('.');
  }
  return `${groups.slice(0, 4).join(':')}::/64`;
}

/** The eight groups in hexadecimal, lower case, without leading zeros. */
function expand(address: string): string[] {
  // A URL writes an IPv4 tail as two groups, and everything in its shortest form (WHATWG URL, 3.5).
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const before = head.split(':').filter(Boolean);
  const after = (tail ?? '').split(':').filter(Boolean);
  return [...before, ...Array(8 - before.length - after.length).fill('0'), ...after];
}
