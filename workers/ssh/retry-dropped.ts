import { setTimeout as delay } from 'node:timers/promises';
import { WindlassError } from '../../shared/errors/errors.ts';
import { DroppedBeforeLogin } from './dial.ts';

const MAX_TRIES = 5;
const FIRST_WAIT_MS = 500;
/** A host that always does so is told of soon: no try begins after so long. */
const MAX_MS = 10_000;

/**
 * Retries, later and later, if a host drops the connection before it shows its key: sshd does so at random while others
 * log in (MaxStartups). Waits are jittered, so that two workers do not meet again.
 */
export async function retryDropped<T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const since = performance.now();
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      const cause = error instanceof WindlassError ? error.cause : undefined;
      const isDropped = cause instanceof DroppedBeforeLogin && cause.isUnseen;
      const isLast = tries === MAX_TRIES || performance.now() - since > MAX_MS;
      if (!isDropped || isLast) throw error;
      const most = FIRST_WAIT_MS * 2 ** (tries - 1);
      await delay(most * (0.5 + Math.random() / 2), undefined, { signal });
    }
  }
}
