const MAX_LENGTH = 2_048;
/** An origin that no target names. */
const BASE = 'http://windlass.invalid';

/**
 * Where a client goes after login, without an open redirect: `target` if every browser reads it as a path on this
 * origin, else `home`. Browsers read `\` as `/` and skip tabs and line ends (WHATWG URL, 4.4), so `/\host`,
 * `/<tab>/host` and, once normalised, `/..//host` name another host.
 */
export function safeRedirectTarget(target: string | undefined, home = '/'): string {
  if (!target?.startsWith('/') || target.length > MAX_LENGTH) return home;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  if (/[\\\u0000-\u0020\u007f]/.test(target)) return home;
  if (!URL.canParse(target, BASE)) return home;
  const { origin, pathname } = new URL(target, BASE);
  return origin === BASE && !pathname.startsWith('//') ? target : home;
}
