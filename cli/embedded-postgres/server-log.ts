import { open, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';

const LARGEST_BYTES = 8 * 2 ** 20;
const TAIL_BYTES = 16_384;

/** The file that Postgres writes its own log to: it can write there whoever else has died. */
export interface ServerLog {
  path: string;
  descriptor: number;
  /** The present end, in bytes. */
  mark(): Promise<number>;
  /** What was written since, at most the last 16 KiB. */
  readSince(mark: number): Promise<string>;
  /** Empties it where it has grown beyond 8 MiB. */
  trim(): Promise<void>;
  close(): Promise<void>;
}

/** Opens `<dataDir>/postgres.log`; one that has grown beyond 8 MiB is kept as `postgres.log.1`. */
export async function openServerLog(dataDir: string): Promise<ServerLog> {
  const path = join(dataDir, 'postgres.log');
  const old = await stat(path).catch(() => undefined);
  if (old && old.size > LARGEST_BYTES) await rename(path, `${path}.1`);
  // Appending: after it was emptied Postgres goes on at the new end.
  const file = await open(path, 'a+', 0o600);
  return {
    path,
    descriptor: file.fd,
    async mark() {
      return (await file.stat()).size;
    },
    async readSince(mark) {
      const { size } = await file.stat();
      const start = Math.max(mark, size - TAIL_BYTES);
      const buffer = Buffer.alloc(Math.max(0, size - start));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, start);
      return buffer.toString('utf8', 0, bytesRead);
    },
    async trim() {
      if ((await file.stat()).size > LARGEST_BYTES) await file.truncate(0);
    },
    close: () => file.close(),
  };
}
