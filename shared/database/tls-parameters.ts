import { parametersOf } from './host-urls.ts';

const MODES = ['disable', 'require', 'verify-ca', 'verify-full'];
const PARAMETERS = ['sslmode', 'sslnegotiation', 'sslrootcert', 'sslcert', 'sslkey', 'sslpassword'];
const FILES = ['sslrootcert', 'sslcert', 'sslkey'];
/** The authorities that Node trusts, and those in NODE_EXTRA_CA_CERTS. */
export const SYSTEM = 'system';

/** What is wrong with the parameters of TLS in a URL, which have the meanings that libpq gives them; undefined: nothing. */
export function findTlsProblem(url: string): string | undefined {
  const parameters = parametersOf(url);
  const given = (name: string) => parameters.get(name);
  const mode = given('sslmode');
  const names = [...parameters.keys()].filter(name => /^ssl./i.test(name));
  // Ignored, it would leave a link in plain text, or a server that nobody verifies.
  const unknown = names.find(name => !PARAMETERS.includes(name));
  if (unknown) return `has ${unknown}, which is none of ${listOf(PARAMETERS)}`;
  if (new Set(names).size < names.length) return 'has a parameter of TLS twice';
  if (parameters.has('ssl')) return 'says sslmode=verify-full or sslmode=require instead of ssl';
  // `allow` and `prefer`, libpq's default, let whoever answers decide that nothing is encrypted.
  if (mode !== null && !MODES.includes(mode)) return `must have as sslmode ${listOf(MODES)}`;
  const negotiation = given('sslnegotiation');
  if (![null, 'postgres', 'direct'].includes(negotiation))
    return 'must have as sslnegotiation postgres or direct';
  const [needy] = [...parameters.keys()].filter(name => /^ssl(rootcert|cert|key)$/.test(name));
  const needsTls = needy ?? (negotiation === 'direct' ? 'sslnegotiation=direct' : undefined);
  if (needsTls && (mode ?? 'disable') === 'disable')
    return `needs sslmode=verify-full for its ${needsTls}`;
  if (mode === 'verify-ca' && given('sslrootcert') === null)
    return 'needs sslrootcert for sslmode=verify-ca: any authority has certificates for anybody';
  if (given('sslrootcert') === SYSTEM && mode !== 'verify-full')
    return `needs sslmode=verify-full for sslrootcert=${SYSTEM}`;
  if (parameters.has('sslcert') !== parameters.has('sslkey'))
    return 'needs sslcert and sslkey together';
  // The programs of a fleet work in another folder than the command that starts them.
  const relative = FILES.find(name => /^(?!\/|system$)/.test(given(name) ?? SYSTEM));
  if (relative) return `must name a file by its whole path as ${relative}`;
  return undefined;
}

const listOf = (words: string[]) => `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
