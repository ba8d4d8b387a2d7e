import type { RequestHandler } from 'express';

/**
 * Disconnects a client that reads nothing of its answer for a time, since unsent bytes stay in memory. A slow reader is
 * served: Node restarts a socket's timer whenever the kernel takes bytes.
 */
export function disconnectStalledReaders(ms = 60_000): RequestHandler {
  return ({ socket }, res, next) => {
    res.setTimeout(ms, () => {
      // Without unsent bytes the answer is still being made.
      if (socket.writableLength > 0) socket.destroy();
    });
    next();
  };
}
