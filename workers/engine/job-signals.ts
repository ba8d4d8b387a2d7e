import { WindlassError } from '../../shared/errors/errors.ts';
import { LeaseRevoked } from './claim.ts';
import { ReleaseJob } from './release-job.ts';

/**
 * The abort signals of one attempt at a job. The first reason stays: LeaseRevoked, WindlassError `cancelled`, or
 * ReleaseJob when the worker stops.
 */
export class JobSignals {
  readonly #work = new AbortController();
  readonly #cleanup = new AbortController();
  /** Aborted when the work must end. */
  readonly signal = this.#work.signal;
  /** Aborted when even the cleanup after a cancel must stop; never with `cancelled`. */
  readonly cleanupSignal = this.#cleanup.signal;
  readonly #stopping: AbortSignal;
  readonly #onStop: () => void;
  #isPinned = false;

  /** `stopping` is aborted when the worker stops. */
  constructor(stopping: AbortSignal) {
    this.#stopping = stopping;
    this.#onStop = () => {
      if (!this.#isPinned) this.#abortBoth(new ReleaseJob('the worker is stopping'));
    };
    stopping.addEventListener('abort', this.#onStop, { once: true });
    if (stopping.aborted) this.#onStop();
  }

  cancel(): void {
    this.#work.abort(new WindlassError('cancelled'));
  }

  revokeLease(id: string): void {
    this.#abortBoth(new LeaseRevoked(id));
  }

  pin(): void {
    this.#isPinned = true;
  }

  unpin(): void {
    this.#isPinned = false;
    if (this.#stopping.aborted) this.#onStop();
  }

  close(): void {
    this.#stopping.removeEventListener('abort', this.#onStop);
  }

  #abortBoth(reason: Error): void {
    this.#work.abort(reason);
    this.#cleanup.abort(reason);
  }
}

/**
 * The cause of a failure: after an abort it is the signal's reason. A handler that cleans up after a cancel may add to
 * it, or release the job so that another worker continues the cleanup.
 */
export function causeOf(
  error: unknown,
  { signal, cleanupSignal }: Pick<JobSignals, 'signal' | 'cleanupSignal'>,
): unknown {
  if (cleanupSignal.reason instanceof LeaseRevoked) return cleanupSignal.reason;
  const isCause =
    error instanceof LeaseRevoked || error instanceof ReleaseJob || isCancelled(error);
  return signal.aborted && !isCause ? signal.reason : error;
}

export const isCancelled = (error: unknown): error is WindlassError =>
  error instanceof WindlassError && error.code === 'cancelled';

/** Whether the client's cancel is what aborted the signal. */
export const wasCancelled = ({ signal }: { signal: AbortSignal }): boolean =>
  isCancelled(signal.reason);
