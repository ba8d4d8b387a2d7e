const PARTS = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s;
const TARGET = 'target_session_attrs';
const AUTH = 'require_auth';
/** The one way that can be required of a server. */
const SCRAM = 'scram-sha-256';

/** The URL of each server of a URL that may name several, as libpq does: `postgres://user@one:5432,two:5433/name`. */
export function splitHosts(url: string): string[] {
  const [, before = '', hosts = '', after = ''] = PARTS.exec(url) ?? [];
  return (hosts ? hosts.split(',').map(host => before + host + after) : [url]).map(withoutOurs);
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

const parametersOf = (url: string) => new URLSearchParams(/\?([^#]*)/.exec(url)?.[1]);

/** The hosts of a URL, without its user and password. */
export const hostsOf = (url: string): string =>
  splitHosts(url)
    .map(each => new URL(each).host)
    .join(',');

function withoutOurs(url: string): string {
  const ours = [TARGET, AUTH].filter(name => url.includes(name));
  if (ours.length === 0 || !URL.canParse(url)) return url;
  const parsed = new URL(url);
  for (const name of ours) parsed.searchParams.delete(name);
  return parsed.href;
}
