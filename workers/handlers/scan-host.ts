import type { Handler } from '../context.ts';
import { scanHostKeys } from '../ssh/connect.ts';

/** Learns the keys that a new host shows, for an administrator who trusts them on sight. */
const scanHost: Handler<'scan-host'> = async ({ payload, signal, cancel }) => ({
  result: { keys: await scanHostKeys(payload, AbortSignal.any([signal, cancel])) },
});

export default scanHost;
