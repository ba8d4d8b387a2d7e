import type { Logger } from '../process/log.ts';
import { failureLevel } from './failure-level.ts';

/** Writes what its caller succeeds without, such as a last use. Where that fails, the log says that `what` failed. */
export async function writeOrLog(
  log: Pick<Logger, ReturnType<typeof failureLevel>>,
  what: string,
  write: PromiseLike<unknown>,
): Promise<void> {
  try {
    await write;
  } catch (err) {
    log[failureLevel(err)]({ err }, `${what} failed`);
  }
}
