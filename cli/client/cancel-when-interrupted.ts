import type { Windlass } from '../../clients/typescript/src/windlass.ts';
import { OUR_FAULT } from '../exit-status.ts';
import { describe } from '../output/describe-error.ts';
import { printNotice } from '../output/print-notice.ts';
import { SIGNALS, STATUS } from './signal-status.ts';

export interface Interruption {
  /** To end with, once there was a signal. */
  readonly status: number | undefined;
  /** Does what a signal does that ends the command with this status. */
  interrupt(status: number): Promise<void>;
  /** From here on a signal ends the process, as ever. */
  stop(): void;
}

/**
 * The first signal cancels the job, even one that is just being accepted, and waits for its end. The second one stops
 * waiting. `isTold`: on standard error, for it may take a job of a batch system that was meant to go on.
 */
export function cancelWhenInterrupted(
  windlass: Windlass,
  job: Promise<string>,
  { isTold = false }: { isTold?: boolean } = {},
): Interruption {
  let status: number | undefined;
  let id: string | undefined;
  job.then(
    accepted => {
      id = accepted;
    },
    () => {},
  );
  const interrupt = async (given: number, tells = false) => {
    if (status !== undefined) {
      leave(id);
      process.exit(given);
    }
    status = given;
    // Who waits for it tells why there is none.
    const accepted = await job.catch(() => undefined);
    if (accepted === undefined) return;
    if (tells) printNotice(`cancelling job ${accepted} …`);
    try {
      await windlass.cancel(accepted);
    } catch (error) {
      printNotice(`the job could not be cancelled: ${describe(error) ?? String(error)}`);
      leave(accepted);
      process.exit(OUR_FAULT);
    }
  };
  const onSignal = (signal: NodeJS.Signals) =>
    void interrupt(STATUS[signal as keyof typeof STATUS], isTold);
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return {
    interrupt,
    get status() {
      return status;
    },
    stop() {
      for (const signal of SIGNALS) process.off(signal, onSignal);
    },
  };
}

/** What may go on without this process, and how it is ended. */
function leave(id: string | undefined): void {
  printNotice(
    id === undefined
      ? 'the job may have begun, and then goes on: windlass jobs'
      : `the job ${id} may go on: windlass cancel ${id}`,
  );
}
