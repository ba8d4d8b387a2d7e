import type { ApiContext } from '../../context.ts';
import type { Exchange } from '../../http/exchange.ts';
import { toWindlassError } from '../../http/to-windlass-error.ts';
import { identifyAfterWait } from '../../identity/identify-sender.ts';

/**
 * Identifies the sender again when a job has ended. Throws where credentials or rights were revoked meanwhile. False
 * where that is not known for now: a client repeats what is answered 429 or 503, and the job may have run.
 */
export async function identifyAfterEnd(api: ApiContext, { req, res }: Exchange): Promise<boolean> {
  try {
    await identifyAfterWait(api, { req, res });
    return true;
  } catch (error) {
    const { status } = toWindlassError(error);
    if (status < 500 && status !== 429) throw error;
    return false;
  }
}
