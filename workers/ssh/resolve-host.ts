import { lookup } from 'node:dns/promises';
import { WindlassError } from '../../shared/errors/errors.ts';
import { isPrivateAddress } from '../../shared/ssh/private-addresses.ts';

/** More are not tried. */
const MAX_ADDRESSES = 8;

/**
 * Resolves the name once, and checks the addresses that a connection may be made to. Throws `host_not_allowed` where all are
 * private ones, unless the host's entry allows them.
 */
export async function resolveHost(host: { address: string; private: boolean }): Promise<string[]> {
  const options = { all: true, verbatim: true } as const;
  const found = await lookup(host.address, options).catch((cause: unknown) => {
    throw new WindlassError('remote_connection_failed', {
      detail: `The name ${host.address} could not be resolved.`,
      hint: "Check the address in the host's entry.",
      cause,
    });
  });
  const allowed = found
    .map(({ address }) => address)
    .filter(address => host.private || !isPrivateAddress(address));
  if (allowed.length === 0) {
    throw new WindlassError('host_not_allowed', {
      detail: `${host.address} is a loopback, link-local or private address, or leads to one.`,
      hint: 'A server administrator can allow that with "private": true in the host\'s entry.',
    });
  }
  return allowed.slice(0, MAX_ADDRESSES);
}
