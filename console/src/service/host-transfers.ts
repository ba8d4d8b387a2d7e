import { WindlassError } from '@windlass/client';
import { windlass } from './client.ts';
import type { Dropped } from './dropped.ts';
import { refreshListings } from './files.ts';
import { sendFromPage, useTransfers } from './page-transfers.ts';
import { join } from './paths.ts';
import { watchFile } from './send-file.ts';

export interface HostFileTransfer {
  key: number;
  sid: string;
  file: File;
  /** On the host. */
  path: string;
  /** Below the folder into which it was dropped. */
  name: string;
  /** `exists`: the user is asked whether it replaces the file that is there. */
  state: 'waits' | 'sends' | 'done' | 'exists' | 'failed';
  replaces: boolean;
  /** Bytes that have gone. */
  sent: number;
  error?: unknown;
}

const REFRESH_MS = 2_000;

const queue = sendFromPage<HostFileTransfer>(send);
let refreshed = 0;

/** The files that are sent to the host of a session, or were. */
export const useHostTransfers = (sid: string): HostFileTransfer[] =>
  useTransfers(queue).filter(transfer => transfer.sid === sid);

/** Files are written one after the other. Those that are `present` wait until the user says that they are replaced. */
export function sendFiles(
  { sid, folder, present }: { sid: string; folder: string; present: Set<string> },
  dropped: Dropped[],
): void {
  queue.add(dropped, (key, { path: name, file }) => ({
    key,
    sid,
    file,
    name,
    path: join(folder, name),
    state: present.has(name) ? 'exists' : 'waits',
    replaces: false,
    sent: 0,
  }));
}

const keysOf = (transfers: readonly HostFileTransfer[]) => transfers.map(({ key }) => key);

export const sendAgain = (
  transfers: readonly HostFileTransfer[],
  given: { replaces?: boolean } = {},
): void => queue.change(keysOf(transfers), { state: 'waits', error: undefined, ...given });

/** Ends those that are under way, and forgets them. */
export const dropTransfers = (transfers: readonly HostFileTransfer[]): void =>
  queue.remove(keysOf(transfers));

/** Forgets what is over. */
export function clearTransfers(sid: string): void {
  const isOver = (one: HostFileTransfer) =>
    one.sid === sid && ['done', 'failed'].includes(one.state);
  dropTransfers(queue.list.filter(isOver));
}

async function send(
  { key, sid, path, name, file, replaces }: HostFileTransfer,
  signal: AbortSignal,
): Promise<Partial<HostFileTransfer>> {
  try {
    const options = { exclusive: !replaces, parents: name.includes('/'), signal };
    const tell = (sent: number) => {
      if (!signal.aborted) queue.change([key], { sent });
    };
    tell(0);
    await watchFile({ path, file, onProgress: tell }, () =>
      windlass.session(sid).writeFile(path, file, options),
    );
    return { state: 'done' };
  } catch (error) {
    const exists = error instanceof WindlassError && error.code === 'precondition_failed';
    return { state: exists ? 'exists' : 'failed', error };
  } finally {
    refresh(sid);
  }
}

/** Many small files do not each have the folder listed again. */
function refresh(sid: string): void {
  const isLast = !queue.list.some(one => one.sid === sid && one.state === 'waits');
  if (!isLast && performance.now() - refreshed < REFRESH_MS) return;
  void refreshListings(sid);
  refreshed = performance.now();
}
