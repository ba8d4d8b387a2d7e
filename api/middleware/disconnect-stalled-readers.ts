import type { RequestHandler } from 'express';

/**
 * Cuts off a client that takes nothing of its answer for so long: what waits for it is held in memory. One that is slow,
 * but takes some, is served: Node's timer of a socket begins anew with each byte that the kernel took.
 */
export function disconnectStalledReaders(ms = 60_000): RequestHandler {
  return ({ socket }, res, next) => {
    res.setTimeout(ms, () => {
      // Quiet is not stalled: the answer may still be in the making.
      if (socket.writableLength > 0) socket.destroy();
    });
    next();
  };
}
