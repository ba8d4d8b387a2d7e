import { connect } from '../connect.ts';
import { tellEnd } from '../follow-to-end.ts';

/** `windlass cancel`: asks for the end of jobs. */
export async function cancelJobs(ids: string[]): Promise<void> {
  const windlass = await connect();
  for (const id of ids) {
    const isCancelled = await windlass.cancel(id);
    process.stdout.write(isCancelled ? `${id} is being cancelled.\n` : `${id} had ended before.\n`);
  }
}

/** `windlass wait`: ends as the job does. */
export async function waitForJob(id: string, { json }: { json?: boolean }): Promise<void> {
  const windlass = await connect();
  const job = await windlass.wait(id);
  if (json) process.stdout.write(`${JSON.stringify(job)}\n`);
  process.exitCode = tellEnd(job);
}
