import { WindlassError } from '../../clients/typescript/src/error.ts';
import type { Job } from '../../clients/typescript/src/jobs.ts';
import type { Windlass } from '../../clients/typescript/src/windlass.ts';
import { OUR_FAULT } from '../exit-status.ts';
import { joinLines } from '../output/describe-error.ts';
import { lostOutputStatus, whenOutputIsLost } from '../output/lost-output.ts';
import { ownHint } from '../output/own-hints.ts';
import { printNotice } from '../output/print-notice.ts';
import { write } from '../output/write.ts';
import { cancelWhenInterrupted } from './cancel-when-interrupted.ts';
import { printEvents, printLines } from './print-output.ts';

export interface FollowChoice {
  /** Lines of JSON: one for each line of output, and the job's record at last. */
  json?: boolean;
  /** Ctrl-C, SIGTERM and output that nobody takes cancel the job. */
  cancels?: boolean;
}

/** Prints a job's output until it has ended. The exit status that tells how it ended. */
export async function followToEnd(
  windlass: Windlass,
  job: Promise<string>,
  { json = false, cancels = false }: FollowChoice,
): Promise<number> {
  const interruption = cancels ? cancelWhenInterrupted(windlass, job, { isTold: true }) : undefined;
  // Nobody reads what it prints until it has ended: this ends once the cancellation is accepted, as ssh does. Where there is
  // no job, who waits for it tells why.
  if (interruption)
    whenOutputIsLost(status => {
      Promise.all([job, interruption.interrupt(status)]).then(
        () => process.exit(status),
        () => {},
      );
    });
  const id = await job;
  const ended = await printToEnd(windlass, id, json).catch((error: unknown) => {
    // Nothing else has told its id.
    if (error instanceof WindlassError && error.status !== 404)
      printNotice(`the job ${id} may go on: windlass logs -f ${id}`);
    throw error;
  });
  if (json) await write(process.stdout, `${JSON.stringify(ended)}\n`);
  // The job may have ended well before it could be cancelled.
  return lostOutputStatus() ?? tellEnd(ended, interruption?.status);
}

async function printToEnd(windlass: Windlass, id: string, json: boolean): Promise<Job> {
  const follow = windlass.follow(id);
  await (json ? printLines(follow.lines()) : printEvents(follow.events()));
  return windlass.wait(id);
}

/** Says what went wrong, if something did. */
export function tellEnd({ state, result, error }: Job, interrupted?: number): number {
  if (state === 'succeeded') {
    const { returncode } = (result ?? {}) as { returncode?: number | null };
    return returncode ?? 0;
  }
  if (interrupted === undefined) {
    const said = [error?.detail ?? `The job is ${state}.`, ownHint(error?.hint)].filter(Boolean);
    printNotice(joinLines(said.join(' ')));
  }
  return interrupted ?? OUR_FAULT;
}
