import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

export interface ConsoleFile {
  type: string;
  bytes: Buffer;
  /** Undefined where it would not be smaller. */
  gzip: Buffer | undefined;
  /** A strong entity tag of the bytes. */
  tag: string;
}

/** By their paths below /console/; `index.html` is the page itself. */
export type ConsoleFiles = Map<string, ConsoleFile>;

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.md': 'text/markdown; charset=utf-8',
};
const SMALL = 1_024;

/**
 * The built console, a few hundred kB, in memory: a build that replaces the files changes no running process. `path` is
 * that of PUBLIC_URL, for `<base>`. Empty where nothing was built.
 */
export async function readConsoleFiles(folder: URL, path: string): Promise<ConsoleFiles> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const names = entries
    .filter(entry => entry.isFile())
    .map(entry => relative(fileURLToPath(folder), join(entry.parentPath, entry.name)));
  const files = names.map(async (name): Promise<[string, ConsoleFile]> => {
    const stored = await readFile(new URL(name, folder));
    const bytes = name === 'index.html' ? placePage(stored.toString('utf8'), path) : stored;
    return [name, describeFile(name, bytes)];
  });
  return new Map(await Promise.all(files));
}

/** Tells the page where it is: its links, and the addresses of the API, begin there. */
function placePage(html: string, path: string): Buffer {
  return Buffer.from(html.replace('<base href="/console/">', `<base href="${path}/console/">`));
}

function describeFile(name: string, bytes: Buffer): ConsoleFile {
  const packed = bytes.length > SMALL ? gzipSync(bytes, { level: 9 }) : undefined;
  return {
    type: TYPES[extname(name)] ?? 'application/octet-stream',
    bytes,
    gzip: packed && packed.length < bytes.length ? packed : undefined,
    tag: createHash('sha256').update(bytes).digest('base64url').slice(0, 22),
  };
}
