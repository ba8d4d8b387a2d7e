import { effectIntended } from '../../shared/jobs/run-intent.ts';
import type { JobContext } from '../context.ts';

/**
 * Commits, under the lease, that the job is about to change a file of its host. By `runAt` a later try knows that the
 * change may have been made. Throws the signal's reason.
 */
export async function recordIntent({ signal, update, assertLeased }: JobContext): Promise<void> {
  await update(effectIntended());
  // After a cancel that came before it, a repeat of the request may have begun that knows nothing of this intent.
  await assertLeased(performance.now());
  signal.throwIfAborted();
}
