import type { Logger } from '../../shared/process/log.ts';
import { findIsolation } from './confine.ts';

/** Says at the start of a worker what does not keep programs that read files of others from the rest of the machine. */
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
