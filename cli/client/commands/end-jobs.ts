import { printRecord } from '../../output/print-records.ts';
import { connect } from '../connect.ts';
import { doEach } from '../do-each.ts';
import { tellEnd } from '../follow-to-end.ts';

/** `windlass cancel`: asks for the end of jobs. */
export async function cancelJobs(ids: string[], { json }: { json?: boolean }): Promise<void> {
  const windlass = await connect();
  await doEach(ids, async id => {
    const cancelled = await windlass.cancel(id);
    const sentence = cancelled ? `${id} is being cancelled.` : `${id} had ended before.`;
    await printRecord({ id, cancelled }, { sentence, json });
  });
}

/** `windlass wait`: ends as the job does. */
export async function waitForJob(id: string, { json }: { json?: boolean }): Promise<void> {
  const windlass = await connect();
  const job = await windlass.wait(id);
  if (json) await printRecord(job, { json });
  process.exitCode = tellEnd(job);
}
