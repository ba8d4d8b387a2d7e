import type { Socket } from 'node:net';
import type { Response } from 'express';
import { MIN_WINDOW_BYTES } from './pace.ts';

/** Node tells no other way how much of a long write the kernel has taken: its own time-out of a socket looks here, too. */
interface Internals {
  _bytesDispatched?: number;
  _handle?: { writeQueueSize?: number } | null;
}

/**
 * Disconnects a client that takes less than 64 KiB of its answer in a window, as it is for bodies, until the returned
 * function is called. While nothing is unsent the answer is still being made.
 */
export function watchReader({ req: { socket } }: Response, windowMs: number): () => void {
  let before: number | undefined;
  const look = () => {
    const taken = socket.writableLength > 0 ? takenBytes(socket) : undefined;
    if (before !== undefined && taken !== undefined && taken - before < MIN_WINDOW_BYTES)
      return void socket.destroy();
    before = taken;
  };
  const windows = setInterval(look, windowMs);
  return () => clearInterval(windows);
}

function takenBytes(socket: Socket): number | undefined {
  const { _bytesDispatched: sent, _handle: handle } = socket as Internals;
  const queued = handle?.writeQueueSize;
  return sent === undefined || queued === undefined ? undefined : sent - queued;
}
