import type { Socket } from 'node:net';
import type { RequestHandler, Response } from 'express';

/**
 * Closes the responses that queue behind another one of their connection (pipelining: RFC 9112, 9.3.2) when the
 * connection is lost. Node emits no event for them, and what a handler releases on `close` would leak.
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
