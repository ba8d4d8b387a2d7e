import { WindlassError } from '@windlass/client';
import { useEffect, useReducer } from 'preact/hooks';
import { join } from '../files/paths.ts';
import type { Dropped } from '../ui/dropped.ts';
import { windlass } from './client.ts';
import { refreshListings } from './files.ts';
import { whenUserLeaves } from './user.ts';

export interface HostFileTransfer {
  id: number;
  sid: string;
  file: File;
  /** On the host. */
  path: string;
  /** Below the folder into which it was dropped. */
  name: string;
  /** `exists`: the user is asked whether it replaces the file that is there. */
  state: 'waits' | 'runs' | 'done' | 'exists' | 'failed';
  replaces: boolean;
  stop: AbortController;
  error?: unknown;
}

const REFRESH_MS = 2_000;

/** Of this page, whichever part of the console is looked at meanwhile. */
let all: HostFileTransfer[] = [];
const watchers = new Set<() => void>();
let isBusy = false;
let made = 0;

const changed = () => {
  for (const tell of watchers) tell();
};

/** The files that are sent to the host of a session, or were. */
export function useHostTransfers(sid: string): HostFileTransfer[] {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const tell = () => redraw(undefined);
    watchers.add(tell);
    return () => {
      watchers.delete(tell);
    };
  }, []);
  return all.filter(transfer => transfer.sid === sid);
}

/** Files are written one after the other. Those that are `present` wait until the user says that they are replaced. */
export function sendFiles(
  { sid, folder, present }: { sid: string; folder: string; present: Set<string> },
  dropped: Dropped[],
): void {
  for (const { path: name, file } of dropped)
    all.push({
      ...{ id: made++, sid, file, name, path: join(folder, name) },
      state: present.has(name) ? 'exists' : 'waits',
      replaces: false,
      stop: new AbortController(),
    });
  changed();
  void work();
}

export function sendAgain(transfer: HostFileTransfer, { replaces = transfer.replaces } = {}): void {
  Object.assign(transfer, { state: 'waits', replaces, error: undefined });
  transfer.stop = new AbortController();
  changed();
  void work();
}

/** Ends it, if it is under way, and forgets it. */
export function dropTransfer(transfer: HostFileTransfer): void {
  transfer.stop.abort(new Error('It was stopped.'));
  all = all.filter(one => one !== transfer);
  changed();
}

/** Forgets what is over. */
export function clearTransfers(sid: string): void {
  all = all.filter(one => one.sid !== sid || !['done', 'failed'].includes(one.state));
  changed();
}

// They are of the user that chose them, and would be sent as another one.
whenUserLeaves(() => {
  for (const transfer of all) dropTransfer(transfer);
});

async function work(): Promise<void> {
  if (isBusy) return;
  isBusy = true;
  addEventListener('beforeunload', askToStay);
  let refreshed = performance.now();
  for (let next = findWaiting(); next; next = findWaiting()) {
    await send(next);
    // Of many small files not each has the folder listed again.
    if (findWaiting() && performance.now() - refreshed < REFRESH_MS) continue;
    void refreshListings(next.sid);
    refreshed = performance.now();
  }
  removeEventListener('beforeunload', askToStay);
  isBusy = false;
}

const findWaiting = () => all.find(({ state }) => state === 'waits');
/** What is not sent yet would be lost with the page. */
const askToStay = (event: Event) => event.preventDefault();

async function send(transfer: HostFileTransfer): Promise<void> {
  const { sid, path, name, file, replaces, stop } = transfer;
  transfer.state = 'runs';
  changed();
  try {
    const options = { exclusive: !replaces, parents: name.includes('/'), signal: stop.signal };
    await windlass.session(sid).writeFile(path, file, options);
    transfer.state = 'done';
  } catch (error) {
    const exists = error instanceof WindlassError && error.code === 'precondition_failed';
    Object.assign(transfer, { state: exists ? 'exists' : 'failed', error });
  }
  changed();
}
