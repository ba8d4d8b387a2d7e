import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listProcesses } from '../../../servers/processes.ts';
import { waitFor } from '../wait-for.ts';

const PREFIX = 'windlass-test-';

export interface TempDir {
  path: string;
  remove(): void;
}

/**
 * A folder that other users may pass through but not list (the embedded Postgres and throwaway
 * accounts are other users when the tests run as root). Its name holds our pid for the sweep.
 */
export function makeTempDir(name: string): TempDir {
  const path = mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-${name}-`));
  chmodSync(path, 0o711);
  return {
    path,
    // Programs that are just ending may still write: rm tries again when a folder refills.
    remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }),
  };
}

/** Removes what test runs that were killed left in the temporary folder. */
export function sweepTempDirs(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    if (pid === undefined || isProcessAlive(Number(pid))) continue;
    try {
      rmSync(join(tmpdir(), name), { recursive: true, force: true });
    } catch {
      // Another user's, or a program that is still ending: the next sweep's.
    }
  }
}

/** Waits for the programs of test processes that have ended to end as well: those whose command lines name their folders. */
export async function awaitTestProcesses(): Promise<void> {
  const named = new RegExp(`/${PREFIX}(\\d+)-`);
  const isLeft = (command: string) => {
    const pid = named.exec(command)?.[1];
    return pid !== undefined && !isProcessAlive(Number(pid));
  };
  await waitFor(() => !listProcesses().some(({ command }) => isLeft(command)), {
    what: 'the programs of the tests to end',
  });
}

export function isProcessAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
