import { lookup } from 'node:dns/promises';
import { WindlassError } from '../../shared/errors/errors.ts';
import { isPrivateAddress } from '../../shared/ssh/private-addresses.ts';

/**
 * Resolves the name once, and checks the address that the connection is made to. Throws `host_not_allowed` for a private
 * address unless the host's entry allows them.
 */
export async function resolveHost(host: { address: string; private: boolean }): Promise<string> {
  const found = await lookup(host.address, { verbatim: true }).catch((cause: unknown) => {
    throw new WindlassError('remote_connection_failed', {
      detail: `The name ${host.address} could not be resolved.`,
      hint: "Check the address in the host's entry.",
      cause,
    });
  });
  if (!host.private && isPrivateAddress(found.address)) {
    throw new WindlassError('host_not_allowed', {
      detail: `${host.address} is a loopback, link-local or private address, or leads to one.`,
      hint: 'A server administrator can allow that with "private": true in the host\'s entry.',
    });
  }
  return found.address;
}
