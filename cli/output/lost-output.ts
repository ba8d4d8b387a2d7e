import { errnoOf } from '../command-error.ts';
import { printNotice } from './print-notice.ts';

/** 128 + SIGPIPE, as in shells: a reader that has what it wants is no fault. */
const READER_LEFT = 141;

type End = (status: number) => void;

let isLost = false;
let faultStatus: number | undefined;
let failureStatus = 1;
let end: End = status => process.exit(status);

/** Whether standard output takes no more. */
export const isOutputLost = (): boolean => isLost;

/** To end with where output was lost though its reader had not left: somebody would take the rest for the whole. */
export const lostOutputStatus = (): number | undefined => faultStatus;

/** Ends the process where its output cannot be written: quietly where its reader has left, else with `failure`. */
export function watchOutput(failure: number): void {
  failureStatus = failure;
  for (const stream of [process.stdout, process.stderr]) stream.on('error', loseOutput);
}

/** Replaces the immediate exit; the caller ends the process with that status later. */
export function whenOutputIsLost(instead: End): void {
  end = instead;
}

export function loseOutput(error: Error): void {
  if (isLost) return;
  isLost = true;
  const hasLeft = errnoOf(error) === 'EPIPE';
  if (!hasLeft) {
    faultStatus = failureStatus;
    printNotice(`the output cannot be written: ${error.message}.`);
  }
  end(hasLeft ? READER_LEFT : failureStatus);
}
