import type { RequestHandler } from 'express';

/**
 * Makes a body parser refuse a body as soon as more bytes than the limit are announced or have arrived. By itself the
 * parser first reads the whole body and drops it (body-parser 2, read.js); an endless one would never be answered.
 */
export function enforceBodyLimit(parser: RequestHandler, limit: number): RequestHandler {
  return (req, res, next) => {
    let bytes = 0;
    let isOver = false;
    const end = (error?: unknown) => {
      // A request answered as too slow must not be handled when the rest of its body arrives after all.
      if (isOver || res.headersSent) return;
      isOver = true;
      req.off('data', count);
      next(error);
    };
    const count = (piece: Buffer) => {
      bytes += piece.length;
      if (bytes > limit) end(entityTooLarge(limit));
    };
    parser(req, res, end);
    // A parser of another media type has called back by now.
    if (isOver) return;
    if (Number(req.headers['content-length']) > limit) end(entityTooLarge(limit));
    // While the parser does not read yet, a listener here would take its bytes.
    else if (req.readableFlowing) req.on('data', count);
  };
}

/** An error as body-parser throws it, for answerErrors(). */
export const entityTooLarge = (limit: number): Error =>
  Object.assign(new Error('too large'), { type: 'entity.too.large', limit });
