import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Source } from './upload.ts';

/** A file of this machine, to be given to upload(). It is open until close(). */
export interface OpenedFile extends Source {
  readonly name: string;
  close(): Promise<void>;
}

/** Opens a file for upload(): parts of it are read when they are sent. Throws as node:fs does. */
export async function openFile(path: string): Promise<OpenedFile> {
  const handle = await open(path);
  const { size } = await handle.stat();
  return {
    name: basename(path),
    size,
    slice: (start, end) => ({
      async arrayBuffer() {
        const bytes = new Uint8Array(end - start);
        for (let at = 0; at < bytes.length; ) {
          const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at);
          if (bytesRead === 0) throw new Error(`${path} has become shorter while it was sent.`);
          at += bytesRead;
        }
        return bytes.buffer;
      },
    }),
    close: () => handle.close(),
  };
}
