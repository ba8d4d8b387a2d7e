import type { Response } from 'express';
import { followSignal } from '../../../shared/abort.ts';
import type { ApiContext } from '../../context.ts';

/** A signal that is aborted when the client disconnects, when the process stops, or after so many seconds (0: never). */
export function limitWait(
  api: ApiContext,
  res: Response,
  seconds = 0,
): { signal: AbortSignal; isDisconnected(): boolean } {
  const disconnected = new AbortController();
  res.once('close', () => disconnected.abort());
  if (res.destroyed) disconnected.abort();
  const stopping = followSignal(api.stopping);
  res.once('close', stopping.unlink);
  const signals = [disconnected.signal, stopping.signal];
  if (seconds > 0) signals.push(AbortSignal.timeout(Math.min(seconds * 1_000, 2 ** 31 - 1)));
  return {
    signal: AbortSignal.any(signals),
    isDisconnected: () => disconnected.signal.aborted,
  };
}
