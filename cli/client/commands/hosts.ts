import { unwrap } from '../../../clients/typescript/src/api.ts';
import type { components } from '../../../clients/typescript/src/schema.ts';
import { CommandError } from '../../command-error.ts';
import { printDone, printRecord, printRecords } from '../../output/print-records.ts';
import { connect, connectByPassword, type PasswordOptions } from '../connect.ts';
import { readPages } from '../read-pages.ts';

type Host = components['schemas']['Host'];

export interface NewHostOptions extends PasswordOptions {
  address?: string;
  port?: number;
  key?: string[];
  trust?: boolean;
  private?: boolean;
  jump?: string;
  agent: boolean;
  json?: boolean;
}

/** `windlass host list`: administrators see how each is reached. */
export async function listHosts({ json }: { json?: boolean }): Promise<void> {
  const { api } = await connect();
  const hosts = await readPages(query => unwrap(api.GET('/api/hosts', { params: { query } })));
  await printRecords(hosts, {
    columns: {
      NAME: ({ name }) => name,
      ADDRESS: host => ('address' in host ? addressOf(host) : ''),
      FINGERPRINTS: host => ('fingerprints' in host ? host.fingerprints.join(' ') : ''),
    },
    json,
  });
}

/** `windlass host add`: with its keys, or with those that it shows now. */
export async function addHost(name: string, options: NewHostOptions): Promise<void> {
  const { address, port, key: keys, trust, agent, private: isPrivate, jump, json } = options;
  if ((keys === undefined) === (trust === undefined))
    throw new CommandError('A host is known by its keys.', {
      hint: 'Give each as --key "ssh-ed25519 AAAA…", or --trust for those that it shows now.',
    });
  if (jump !== undefined && trust)
    throw new CommandError('What a host shows behind a jump host is not seen without a login.', {
      hint: 'Give each of its keys as --key "ssh-ed25519 AAAA…".',
    });
  const { api } = await connectByPassword(options);
  const body = {
    name,
    address: address ?? name,
    port: port ?? 22,
    agent,
    private: isPrivate ?? false,
    ...(jump === undefined ? {} : { jump }),
    ...(keys ? { keys } : { trust: 'now' as const }),
  };
  await tellHost(await unwrap(api.POST('/api/hosts', { body })), json);
}

/** `windlass host trust`: pins the keys that the host shows now; its sessions end if they are others. */
export async function trustShownKeys(
  name: string,
  options: PasswordOptions & { json?: boolean },
): Promise<void> {
  const { api } = await connectByPassword(options);
  const params = { path: { name } };
  const body = { trust: 'now' as const };
  await tellHost(await unwrap(api.PUT('/api/hosts/{name}', { params, body })), options.json);
}

/** `windlass host remove` */
export async function removeHost(
  name: string,
  options: PasswordOptions & { json?: boolean },
): Promise<void> {
  const { api } = await connectByPassword(options);
  await unwrap(api.DELETE('/api/hosts/{name}', { params: { path: { name } } }));
  await printDone({ name, removed: true }, options);
}

const addressOf = ({ address, port, jump }: Host) =>
  `${address}:${port}${jump === null ? '' : ` through ${jump}`}`;

function tellHost(host: Host, json: boolean | undefined): Promise<void> {
  const { name, keys, fingerprints } = host;
  const sentence = [
    `${name} is ${addressOf(host)}, with these keys; compare them with those that its administrator tells you:`,
    ...fingerprints.map((fingerprint, n) => `${fingerprint}${roleOf(keys[n])}`),
  ].join('\n  ');
  return printRecord(host, { sentence, json });
}

/** Says what a pin is: an authority is none of the host's own keys. */
function roleOf(pin = ''): string {
  const [marker, patterns] = pin.split(' ');
  return marker === '@cert-authority' ? ` (the authority for ${patterns})` : '';
}
