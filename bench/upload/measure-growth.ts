import { closeSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '../../servers/api-client.ts';
import { beginUpload, makeModel, parseUpload } from './begin-upload.ts';
import { TALL, writeCsv } from './csv-files.ts';
import { type Role, watchPeaks } from './peak-memory.ts';
import { type FileBytes, PART_BYTES, sendParts } from './send-parts.ts';

const MB = 1e6;
const SMALL = 10 * MB;
const LARGE = 10_000 * MB;
/** More memory, in MB, that a process may take for the large file than for the small one. */
const MAX_MORE = 32;

/** What each process takes more for a CSV file of 10 GB than for one of 10 MB, uploaded in parts and parsed. */
export async function measureGrowth(options: {
  client: Client;
  directory: string;
}): Promise<{ passed: boolean }> {
  // Whatever a process takes once, such as for its first requests, is taken by now.
  await measurePeaks(options, SMALL);
  const small = await measurePeaks(options, SMALL);
  const large = await measurePeaks(options, LARGE);
  const growths = (Object.keys(small) as Role[]).map(role => {
    const [from, to] = [small[role] / MB, large[role] / MB];
    return { role, from: Math.round(from), to: Math.round(to), more: Math.round(to - from) };
  });
  const passed = growths.every(({ more }) => more <= MAX_MORE);
  const list = growths.map(({ role, from, to, more }) => `${role} ${from} to ${to} (${more} more)`);
  console.log(
    `${passed ? 'ok  ' : 'MISS'} memory for a CSV of 10 MB, and of 10 GB, in MB: ${list.join(', ')} (at most ${MAX_MORE} more)`,
  );
  return { passed };
}

async function measurePeaks(
  { client, directory }: { client: Client; directory: string },
  size: number,
): Promise<Record<Role, number>> {
  const path = join(directory, 'growth.csv');
  await writeCsv(path, TALL, size);
  const mid = await makeModel(client);
  const { uid, partUrl, headers } = await beginUpload(client, mid, 'csv');
  const file = openFile(path);
  const watch = watchPeaks();
  try {
    await sendParts(file, part => ({ url: partUrl(part), method: 'PUT', headers, status: 200 }));
    await parseUpload(client, uid, Math.ceil(file.length / PART_BYTES));
  } finally {
    file.close();
    rmSync(path);
  }
  const peaks = watch.stop();
  await client.delete(`/api/models/${mid}`);
  return peaks;
}

/** Holds no more of the file in memory than what is being sent. */
function openFile(path: string): FileBytes & { close(): void } {
  const file = openSync(path, 'r');
  const { size } = statSync(path);
  return {
    length: size,
    subarray(start, end) {
      const bytes = Buffer.alloc(Math.min(end, size) - start);
      readSync(file, bytes, 0, bytes.length, start);
      return bytes;
    },
    close: () => closeSync(file),
  };
}
