import type { RequestHandler } from 'express';

/**
 * Gives an answer to a write a Content-Type even without content: Slycat's clients read that header of every answer.
 * Answers to GET are left alone, since a 304 must not name another type than the 200 did.
 */
export function nameContentType(): RequestHandler {
  return (req, res, next) => {
    if (WRITES.has(req.method)) {
      const writeHead = res.writeHead;
      res.writeHead = (...head: unknown[]) => {
        if (!res.hasHeader('Content-Type')) res.setHeader('Content-Type', 'text/plain');
        return writeHead.apply(res, head as Parameters<typeof writeHead>);
      };
    }
    next();
  };
}

const WRITES = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);
