import type { Client } from '../../servers/api-client.ts';
import { waitFor } from '../harness/wait-for.ts';

/** Failed expectations end the wait at once: they are no failures of a server that is unreachable. */
export async function insist<T>(what: string, step: () => Promise<T>): Promise<NonNullable<T>> {
  const broken = new AbortController();
  return waitFor(
    () =>
      step().catch((error: Error) => {
        if (error.name === 'AssertionError') broken.abort(error);
        throw error;
      }),
    { what, timeoutMs: 180_000, intervalMs: 100, signal: broken.signal },
  );
}

export async function isServing(client: Client, stop?: AbortSignal): Promise<void> {
  const serves = async () =>
    (await client.fetch('/readyz', { signal: AbortSignal.timeout(5_000) })).ok;
  await waitFor(async () => stop?.aborted || (await serves()), {
    what: 'the service to work again',
    timeoutMs: 90_000,
    intervalMs: 100,
  });
}
