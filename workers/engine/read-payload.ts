import { type JobKind, jobDefinition, type Payload } from '../../shared/jobs/catalog.ts';
import { UNSUPPORTED } from '../../shared/jobs/payload-versions.ts';
import type { AttemptContext } from '../context.ts';
import { ReleaseJob } from './release-job.ts';

/** Seconds until a worker tries again, perhaps a newer one. */
const RETRY_SECONDS = 10;

/**
 * The payload of a claimed job. A job whose payload is not supported waits, as those of a newer release do: its work may
 * have begun, and whatever ends the row would end that on its host too.
 */
export async function readPayload(
  context: AttemptContext,
  kind: JobKind,
): Promise<Payload<JobKind>> {
  const { job, log, signal } = context;
  const read = jobDefinition(kind).payload.safeParse(job.payload);
  if (!read.success) {
    signal.throwIfAborted();
    log.warn({ err: read.error }, 'the payload of a job is not supported: the job waits');
    throw new ReleaseJob(UNSUPPORTED, RETRY_SECONDS, { message: UNSUPPORTED });
  }
  if (job.message === UNSUPPORTED) await context.updateVisibly({ message: null });
  return read.data as Payload<JobKind>;
}
