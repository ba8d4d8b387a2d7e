import type { Logger } from '../../shared/process/log.ts';
import { findIsolation } from './confine.ts';

/** Logs, when a worker starts, which isolation is missing for programs that read others' files. */
export async function reportIsolation(log: Logger): Promise<void> {
  const { user, hasNetwork } = await findIsolation();
  if (hasNetwork)
    log.warn(
      'this system permits no network namespace: ffmpeg and the parsers run with that of the worker',
    );
  if (!user && process.geteuid?.() === 0)
    log.warn(
      'ffmpeg and the parsers run as the user of the worker: no other user may read the program; see docs/operations.md',
    );
}
