import type { IncomingMessage } from 'node:http';
import type { Writable } from 'node:stream';
import { WindlassError } from '../../shared/errors/errors.ts';
import { bodyTooSlow, MIN_WINDOW_BYTES } from '../http/pace.ts';

/**
 * Pipes a request's body into the sink, and fails the sink when the client disconnects or sends less than
 * MIN_WINDOW_BYTES in `windowMs` while it is ready. Never destroys the socket, which has still to carry the answer.
 * Call the returned function when the sink has ended.
 */
export function pipeBody(req: IncomingMessage, sink: Writable, windowMs: number): () => void {
  let lastProgress = performance.now();
  let bytes = req.socket.bytesRead;
  const fail = (error: WindlassError) => {
    req.unpipe(sink);
    sink.destroy(error);
  };
  const paceCheck = setInterval(
    () => {
      const now = performance.now();
      const { bytesRead } = req.socket;
      // While the store is slow, the client cannot send.
      if (bytesRead - bytes >= MIN_WINDOW_BYTES || sink.writableNeedDrain) {
        bytes = bytesRead;
        lastProgress = now;
      } else if (now - lastProgress >= windowMs && !req.complete) fail(bodyTooSlow(windowMs));
    },
    Math.min(1_000, windowMs / 4),
  );
  const onClose = () => {
    // Not `complete`, which is also set when a body has arrived that nobody will read any more.
    if (!req.readableEnded) fail(bodyEndedEarly());
  };
  const onError = () => fail(bodyEndedEarly());
  req.on('close', onClose).on('error', onError);
  if (req.destroyed) process.nextTick(onClose);
  else req.pipe(sink);
  return () => {
    clearInterval(paceCheck);
    req.unpipe(sink);
    req.off('close', onClose);
    // An unhandled error of the socket would end the process.
    req.on('error', () => {}).off('error', onError);
  };
}

export const bodyEndedEarly = () =>
  new WindlassError('bad_request', {
    detail: 'the body ended early.',
    hint: 'Send the part again. Nothing was stored.',
  });
