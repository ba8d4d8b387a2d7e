import { WindlassError } from './error.ts';

/** An id as one segment of an address. `.` and `..` would name something else (RFC 3986, 5.2.4). */
export function escapeId(id: string): string {
  if (!/^\.{0,2}$/.test(id)) return encodeURIComponent(id);
  throw new WindlassError({ code: 'no_id', detail: `"${id}" is no id.` });
}

/**
 * The path of a file on a host as a part of an address. With a part `.` or `..`, which a URL would resolve (URL
 * Standard, 4.4), its slashes are escaped too, so that it is one segment.
 */
export const escapePath = (path: string): string =>
  /(^|\/)\.\.?(\/|$)/.test(path)
    ? `/${encodeURIComponent(path)}`
    : path.split('/').map(encodeURIComponent).join('/');
