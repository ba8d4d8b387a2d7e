import type { ServerResponse } from 'node:http';
import { MAX_TIMER_MS } from '../../../shared/process/max-timer.ts';
import type { ApiContext } from '../../context.ts';

/**
 * A signal that is aborted when the client disconnects, when the process stops, or after `seconds` (0: never).
 * Not made of AbortSignal.any and AbortSignal.timeout: Node 20 collects such a time-out before it fires.
 */
export function limitWait(
  { stopping }: Pick<ApiContext, 'stopping'>,
  res: ServerResponse,
  seconds = 0,
): { signal: AbortSignal; isDisconnected(): boolean } {
  const ended = new AbortController();
  const end = () => ended.abort();
  const { signal } = ended;
  // `close` is not emitted again.
  if (res.destroyed || res.closed) {
    end();
    return { signal, isDisconnected: () => true };
  }
  const timer = seconds > 0 ? setTimeout(end, Math.min(seconds * 1_000, MAX_TIMER_MS)) : undefined;
  let isDisconnected = false;
  stopping.addEventListener('abort', end, { once: true });
  if (stopping.aborted) end();
  res.once('close', () => {
    isDisconnected = true;
    stopping.removeEventListener('abort', end);
    clearTimeout(timer);
    end();
  });
  return { signal, isDisconnected: () => isDisconnected };
}
