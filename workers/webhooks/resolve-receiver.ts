import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { isPrivateAddress } from '../../shared/ssh/private-addresses.ts';

/** Why a receiver was sent nothing, in words for the webhook's owner. */
export class ReceiverProblem extends Error {}

type Lookup = (name: string) => Promise<string[]>;

/**
 * The receiver's addresses, resolved and checked once: the connection uses them, whatever the name resolves to later.
 * Unless private ones are allowed they are left out; throws ReceiverProblem where none is left.
 */
export async function resolveReceiver(
  hostname: string,
  { isPrivateAllowed, lookup = askNameServers }: { isPrivateAllowed: boolean; lookup?: Lookup },
): Promise<string[]> {
  const name = hostname.replace(/^\[|\]$/g, '');
  const found = isIP(name) ? [name] : await lookup(name);
  if (found.length === 0) throw new ReceiverProblem(`The name ${name} could not be resolved.`);
  const allowed = found.filter(address => isPrivateAllowed || !isPrivateAddress(address));
  if (allowed.length === 0)
    throw new ReceiverProblem(
      `Not allowed: ${name} is a loopback, link-local or private address, or leads to one.`,
    );
  return allowed;
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
