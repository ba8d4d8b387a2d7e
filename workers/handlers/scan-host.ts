import type { Handler } from '../context.ts';
import { scanHostKeys } from '../ssh/scan-host-keys.ts';

/** Reads the host keys of a new host, for an administrator who trusts them on first use. */
const scanHost: Handler<'scan-host'> = async ({ payload, signal, worker }) => ({
  result: { keys: await scanHostKeys(payload, signal, worker.config.SSH_ALGORITHMS) },
});

export default scanHost;
