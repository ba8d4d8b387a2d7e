import type { BigIntStats } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { WindlassError } from './error.ts';
import type { Source } from './upload.ts';

/** A file of this machine, to be given to upload(). It is open until close(). */
export interface OpenedFile extends Source {
  readonly name: string;
  /** Another one where the file has changed. */
  readonly state: string;
  check(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens a file for upload(): parts of it are read when they are sent. Throws as node:fs does, and WindlassError for what is no
 * regular file.
 */
export async function openFile(path: string): Promise<OpenedFile> {
  // Before it is opened: that waits for who writes into a pipe.
  const found = await stat(path);
  if (!found.isFile()) throw found.isDirectory() ? isFolder(path) : noRegularFile(path);
  const handle = await open(path);
  const stateOf = (stats: BigIntStats) =>
    [stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(' ');
  /** Renaming or removing the file meanwhile does not change what is read. */
  const contentOf = (stats: BigIntStats) => [stats.size, stats.mtimeNs].join(' ');
  const stats = await handle.stat({ bigint: true });
  const content = contentOf(stats);
  return {
    name: basename(path),
    size: Number(stats.size),
    state: stateOf(stats),
    async check() {
      if (contentOf(await handle.stat({ bigint: true })) !== content) throw hasChanged(path);
    },
    slice: (start, end) => ({
      async arrayBuffer() {
        const bytes = new Uint8Array(end - start);
        for (let at = 0; at < bytes.length; ) {
          const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at);
          if (bytesRead === 0) throw hasChanged(path);
          at += bytesRead;
        }
        return bytes.buffer;
      },
    }),
    close: () => handle.close(),
  };
}

const isFolder = (path: string) =>
  new WindlassError({
    code: 'no_regular_file',
    detail: `${path} is a folder.`,
    hint: 'Give one file: tar packs a folder into one.',
  });

const noRegularFile = (path: string) =>
  new WindlassError({
    code: 'no_regular_file',
    detail: `${path} is no regular file, whose size is known and whose parts can be read again.`,
    hint: 'Give a file, or write what comes from there to one first.',
  });

const hasChanged = (path: string) =>
  new WindlassError({
    code: 'changed',
    detail: `${path} has changed while it was sent.`,
    hint: 'Send it when nothing writes to it.',
  });
