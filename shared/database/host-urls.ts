const PARTS = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s;
const TARGET = 'target_session_attrs';
const AUTH = 'require_auth';
/** The one way that can be required of a server. */
const SCRAM = 'scram-sha-256';

/** The URL of each server of a URL that may name several, as libpq does: `postgres://user@one:5432,two:5433/name`. */
export function splitHosts(url: string): string[] {
  const [, before = '', hosts = '', after = ''] = PARTS.exec(url) ?? [];
  return hosts ? hosts.split(',').map(host => before + host + after) : [url];
}

export interface ServerAddress {
  host: string;
  port: number;
}

/** Where a URL of one server leads. Undefined where it names no host: the drivers have their own defaults. */
export function addressOf(url: string): ServerAddress | undefined {
  if (!URL.canParse(url)) return undefined;
  const { hostname, port } = new URL(url);
  const host = decodeURIComponent(hostname).replace(/^\[(.*)\]$/, '$1');
  return host ? { host, port: Number(port || process.env.PGPORT || 5432) } : undefined;
}

/** The kind of server that a URL asks for. Windlass writes, and so asks for the primary anyway. */
export const targetOf = (url: string): string | null => parametersOf(url).get(TARGET);

/** Whether a server must prove that it knows the password; see requireScram(). */
export const requiresScram = (url: string): boolean => parametersOf(url).get(AUTH) === SCRAM;

/** Whether `require_auth` is absent, or says what can be done. */
export function canRequireAuth(url: string): boolean {
  const parameters = parametersOf(url);
  const wanted = parameters.get(AUTH);
  return wanted === null || (wanted === SCRAM && !parameters.has('sslmode'));
}

/** The URL of the embedded database; it requires that the server proves to know the password. */
export function withScram(url: string): string {
  const demanding = new URL(url);
  demanding.searchParams.set(AUTH, SCRAM);
  return demanding.href;
}

export const parametersOf = (url: string) => new URLSearchParams(/\?([^#]*)/.exec(url)?.[1]);

/** The hosts of a URL, without its user and password. */
export const hostsOf = (url: string): string =>
  splitHosts(url)
    .map(each => new URL(each).host)
    .join(',');

/** The URL without what the drivers do not know, or understand in ways of their own. */
export function withoutOurs(url: string): string {
  if (!URL.canParse(url)) return url;
  const parsed = new URL(url);
  const ours = [...parsed.searchParams.keys()].filter(
    name => name === TARGET || name === AUTH || name.startsWith('ssl'),
  );
  // Otherwise as it was written.
  if (ours.length === 0) return url;
  for (const name of ours) parsed.searchParams.delete(name);
  return parsed.href;
}
