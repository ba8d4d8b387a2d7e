import type { Payload, StreamedKind } from '../../shared/jobs/catalog.ts';
import { READER_SIGN_MS, showReader } from '../../shared/jobs/reader-signs.ts';
import type { ApiContext } from '../context.ts';
import type { Exchange } from '../http/exchange.ts';
import { pathParameter } from '../http/resource.ts';
import { identifyAfterWait } from '../identity/identify-sender.ts';
import { whileClientWaits } from '../jobs/requests/await-job.ts';
import { type StartedJob, startSessionJob } from '../jobs/requests/start-requested-job.ts';

type Reading = {
  [K in StreamedKind]: { kind: K; payload: Payload<K>; name?: string | undefined };
}[StreamedKind];

export interface HostReading {
  job: StartedJob;
  signal: AbortSignal;
  /**
   * Call it once there is something to send. Drops the output and throws `unauthorized` where the sender's credentials
   * were revoked while the job waited.
   */
  identify(output: AsyncGenerator): Promise<void>;
}

/** Starts a job that reads on the session's host, and sends its output. Cancels the job when the client disconnects. */
export async function readFromHost(
  api: ApiContext,
  { req, res }: Exchange,
  request: Reading,
  send: (reading: HostReading) => Promise<void>,
): Promise<void> {
  const sid = pathParameter(req, 'sid');
  const job = await startSessionJob(api, { req, res }, { ...request, session: sid });
  const identify = (output: AsyncGenerator) =>
    identifyAfterWait(api, { req, res }).catch(async error => {
      await output.return(undefined);
      throw error;
    });
  await whileClientWaits(api, { res, job }, async signal => {
    // By these its worker knows, too, that this process is killed. One that cannot be written is followed by the next.
    const signs = setInterval(
      () => void showReader(api.database.db, job.id).catch(() => {}),
      READER_SIGN_MS,
    );
    try {
      await send({ job, signal, identify });
    } finally {
      clearInterval(signs);
    }
  });
}
