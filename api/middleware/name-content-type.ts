import type { RequestHandler } from 'express';

/**
 * Gives an answer to a write a Content-Type where it has none, although it has no content either: Slycat's clients read that
 * header of every answer. An answer to GET is left alone, since 304 must not name another type than the 200 did.
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
