import type { IncomingMessage } from 'node:http';
import type { Writable } from 'node:stream';
import { WindlassError } from '../../shared/errors.ts';
import { LEAST_BYTES } from '../middleware/bound-bodies.ts';

/** A client that has sent less than LEAST_BYTES in so long, while it could, is cut off. */
const SILENT_MS = 30_000;

/**
 * Leads a request's body into the sink, and fails the sink when the client leaves or falls silent, or nearly so. The request itself is
 * never destroyed, nor its socket: it must still be answered. Call what is returned when the sink is done with.
 */
export function pipeBody(req: IncomingMessage, sink: Writable, silentMs = SILENT_MS): () => void {
  let heard = performance.now();
  let bytes = req.socket.bytesRead;
  const fail = (error: WindlassError) => {
    req.unpipe(sink);
    sink.destroy(error);
  };
  const listen = setInterval(
    () => {
      const now = performance.now();
      const { bytesRead } = req.socket;
      // A store that is slow keeps the client waiting, not the other way round.
      if (bytesRead - bytes >= LEAST_BYTES || sink.writableNeedDrain) {
        bytes = bytesRead;
        heard = now;
      } else if (now - heard >= silentMs && !req.complete) fail(fellSilent(silentMs));
    },
    Math.min(1_000, silentMs / 4),
  );
  const onClose = () => {
    if (!req.complete) fail(endedEarly());
  };
  const onError = () => fail(endedEarly());
  req.on('close', onClose).on('error', onError);
  if (req.destroyed) process.nextTick(onClose);
  else req.pipe(sink);
  return () => {
    clearInterval(listen);
    req.unpipe(sink);
    req.off('close', onClose);
    // A socket that breaks later must not end the process.
    req.on('error', () => {}).off('error', onError);
  };
}

export const endedEarly = () =>
  new WindlassError('bad_request', {
    detail: 'Bad request: the body ended early.',
    hint: 'Send the part again. Nothing was kept.',
  });

const fellSilent = (silentMs: number) =>
  new WindlassError('request_timeout', {
    detail: `Request timeout: less than ${LEAST_BYTES >> 10} KiB came in ${silentMs / 1_000} seconds.`,
    hint: 'Send the part again. Nothing was kept.',
  });
