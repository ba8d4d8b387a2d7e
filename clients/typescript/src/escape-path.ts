/**
 * The path of a file on a host, as a part of an address. Where it has a part `.` or `..`, which a URL would resolve (URL
 * Standard, 4.4), its slashes are escaped too, so that it is one segment.
 */
export const escapePath = (path: string): string =>
  /(^|\/)\.\.?(\/|$)/.test(path)
    ? `/${encodeURIComponent(path)}`
    : path.split('/').map(encodeURIComponent).join('/');
