import { z } from 'zod';
import type { Result } from '../../shared/jobs/catalog.ts';
import type { ApiContext } from '../context.ts';
import type { Exchange } from '../http/exchange.ts';
import { currentUser } from '../identity/current-user.ts';
import { lockAdministrator } from '../identity/lock-user.ts';
import { awaitJob } from '../jobs/requests/await-job.ts';
import { requireWorker } from '../jobs/requests/require-worker.ts';
import { startRequestedJob } from '../jobs/requests/start-requested-job.ts';

/** The address and port of a host, as they are given. */
export const hostEndpoint = {
  address: z.string().regex(/^[\w.:-]{1,253}$/, 'must be a host name or an IP address'),
  port: z.number().int().min(1).max(65_535),
  private: z.boolean(),
};
export type HostEndpoint = {
  [Field in keyof typeof hostEndpoint]: z.output<(typeof hostEndpoint)[Field]>;
};
/** `name` is that of its job. */
export type NamedScan = HostEndpoint & { name?: string | undefined };

/**
 * Has a worker connect once and returns the host's keys; `isRepeat` where the job is that of an earlier request with the
 * same Idempotency-Key. Undefined where the client has disconnected.
 */
export async function scanHost(
  api: ApiContext,
  { address, port, private: isPrivate, name }: NamedScan,
  { req, res }: Exchange,
): Promise<{ keys: string[]; isRepeat: boolean } | undefined> {
  await requireWorker(api, 'scan-host');
  const payload = { address, port, private: isPrivate };
  let isRepeat = true;
  const start = () =>
    startRequestedJob(api, { req, res }, async tx => {
      await lockAdministrator(tx, currentUser(res));
      isRepeat = false;
      return { kind: 'scan-host', payload, name };
    });
  const ended = await awaitJob(api, res, start);
  return ended && { keys: (ended.result as Result<'scan-host'>).keys, isRepeat };
}
