import type { Socket } from 'node:net';
import type { RequestHandler, Response } from 'express';

/**
 * Closes answers that wait behind another one on a connection (RFC 9112, 9.3.2) when that is lost: Node tells nothing of
 * them, and whatever is held until an answer is closed would be held for ever.
 */
export function closePipelinedResponses(): RequestHandler {
  const queued = new WeakMap<Socket, Set<Response>>();
  const listen = (socket: Socket): Set<Response> => {
    const answers = new Set<Response>();
    queued.set(socket, answers);
    socket.once('close', () => {
      for (const res of answers)
        if (!res.closed && res.socket === null) res.destroy().emit('close');
    });
    return answers;
  };
  return (req, res, next) => {
    if (res.socket === null) {
      const answers = queued.get(req.socket) ?? listen(req.socket);
      answers.add(res);
      res.once('close', () => answers.delete(res));
    }
    next();
  };
}
