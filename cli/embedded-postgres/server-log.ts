import { open, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';

const LARGEST_BYTES = 8 * 2 ** 20;
const TAIL_BYTES = 16_384;

/** The log file of Postgres. It writes the file itself, so no log is lost when the supervisor dies. */
export interface ServerLog {
  path: string;
  descriptor: number;
  /** The current size in bytes. */
  mark(): Promise<number>;
  /** The text after that size, at most the last 16 KiB. */
  readSince(mark: number): Promise<string>;
  /** Truncates it if it is larger than 8 MiB. */
  trim(): Promise<void>;
  close(): Promise<void>;
}

/** Opens `<dataDir>/postgres.log`; renames one that is larger than 8 MiB to `postgres.log.1`. */
export async function openServerLog(dataDir: string): Promise<ServerLog> {
  const path = join(dataDir, 'postgres.log');
  const old = await stat(path).catch(() => undefined);
  if (old && old.size > LARGEST_BYTES) await rename(path, `${path}.1`);
  // Append mode: after a truncation Postgres continues at the new end.
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
