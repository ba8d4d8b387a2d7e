import type { Windlass } from '../../clients/typescript/src/windlass.ts';
import { printRecord } from '../output/print-records.ts';
import { cancelWhenInterrupted } from './cancel-when-interrupted.ts';

/** Prints the id of a job that runs on by itself. A signal before that cancels it: nobody would know the id. */
export async function printStarted(
  windlass: Windlass,
  started: Promise<string>,
  { json }: { json?: boolean },
): Promise<void> {
  const interruption = cancelWhenInterrupted(windlass, started);
  const job = await started;
  interruption.stop();
  await printRecord({ job }, { sentence: job, json });
  if (interruption.status !== undefined) process.exitCode = interruption.status;
}
