import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { isPrivateAddress } from '../../shared/ssh/private-addresses.ts';

/** Why a receiver was sent nothing, in words for the webhook's owner. */
export class ReceiverProblem extends Error {}

type Lookup = (name: string) => Promise<string[]>;

/**
 * The receiver's address, resolved and checked once: the connection uses it, whatever the name resolves to later.
 * Throws ReceiverProblem for a private address unless these are allowed.
 */
export async function resolveReceiver(
  hostname: string,
  { isPrivateAllowed, lookup = askNameServers }: { isPrivateAllowed: boolean; lookup?: Lookup },
): Promise<string> {
  const name = hostname.replace(/^\[|\]$/g, '');
  const [address] = isIP(name) ? [name] : await lookup(name);
  if (address === undefined) throw new ReceiverProblem(`The name ${name} could not be resolved.`);
  if (!isPrivateAllowed && isPrivateAddress(address))
    throw new ReceiverProblem(
      `Not allowed: ${name} is a loopback, link-local or private address, or leads to one.`,
    );
  return address;
}

/**
 * Not dns.lookup(), which holds one of the few threads for files as long as a name server likes, and users choose these
 * names. So /etc/hosts is ignored.
 */
async function askNameServers(name: string): Promise<string[]> {
  if (/^(.+\.)?localhost\.?$/i.test(name)) return ['127.0.0.1'];
  const resolver = new Resolver({ timeout: 2_000, tries: 2 });
  const [four, six] = await Promise.all([
    resolver.resolve4(name).catch(() => []),
    resolver.resolve6(name).catch(() => []),
  ]);
  return [...four, ...six];
}
