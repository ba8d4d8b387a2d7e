const LONGEST = 2_048;
/** Any origin that a target does not name by itself. */
const BASE = 'http://windlass.invalid';

/**
 * Where a client may go after login: `target` when it is a path on this origin, whichever way it is read, else `/`.
 * Browsers take a backslash for a slash and leave out tabs and line ends (WHATWG URL, 4.4), so `/\host` and `/<tab>/host`
 * name another host like `//host` does; `/..//host` does once its path is normalised.
 */
export function safeRedirectTarget(target: string | undefined): string {
  if (!target?.startsWith('/') || target.length > LONGEST) return '/';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  if (/[\\\u0000-\u0020\u007f]/.test(target)) return '/';
  if (!URL.canParse(target, BASE)) return '/';
  const { origin, pathname } = new URL(target, BASE);
  return origin === BASE && !pathname.startsWith('//') ? target : '/';
}
