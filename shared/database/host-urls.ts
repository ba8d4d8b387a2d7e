const PARTS = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s;
const TARGET = 'target_session_attrs';

/** The URL of each server of a URL that may name several, as libpq does: `postgres://user@one:5432,two:5433/name`. */
export function splitHosts(url: string): string[] {
  const [, before = '', hosts = '', after = ''] = PARTS.exec(url) ?? [];
  return (hosts ? hosts.split(',').map(host => before + host + after) : [url]).map(withoutTarget);
}

/** What a URL says the wanted server must be. Windlass writes, and so asks for the primary anyway. */
export function targetOf(url: string): string | null {
  const query = /\?([^#]*)/.exec(url)?.[1];
  return new URLSearchParams(query).get(TARGET);
}

/** The hosts of a URL, without its user and password. */
export const hostsOf = (url: string): string =>
  splitHosts(url)
    .map(each => new URL(each).host)
    .join(',');

function withoutTarget(url: string): string {
  if (!url.includes(TARGET) || !URL.canParse(url)) return url;
  const parsed = new URL(url);
  parsed.searchParams.delete(TARGET);
  return parsed.href;
}
