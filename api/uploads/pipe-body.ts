import type { IncomingMessage } from 'node:http';
import type { Writable } from 'node:stream';
import { WindlassError } from '../../shared/errors.ts';
import { bodyTooSlow, MIN_WINDOW_BYTES } from '../middleware/limit-body-time.ts';

/**
 * Leads a request's body into the sink, and fails the sink when the client leaves, or has sent less than MIN_WINDOW_BYTES in
 * `windowMs` (LIMIT_BODY_SECONDS) while it could. The request itself is never destroyed, nor its socket: it must still be
 * answered. Call what is returned when the sink is done with.
 */
export function pipeBody(req: IncomingMessage, sink: Writable, windowMs: number): () => void {
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
      if (bytesRead - bytes >= MIN_WINDOW_BYTES || sink.writableNeedDrain) {
        bytes = bytesRead;
        heard = now;
      } else if (now - heard >= windowMs && !req.complete) fail(bodyTooSlow(windowMs));
    },
    Math.min(1_000, windowMs / 4),
  );
  const onClose = () => {
    if (!req.complete) fail(bodyEndedEarly());
  };
  const onError = () => fail(bodyEndedEarly());
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

export const bodyEndedEarly = () =>
  new WindlassError('bad_request', {
    detail: 'Bad request: the body ended early.',
    hint: 'Send the part again. Nothing was kept.',
  });
