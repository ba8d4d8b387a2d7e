import type { RequestHandler } from 'express';

/**
 * A body parser that says so as soon as more bytes came, or are announced, than its limit. By itself it first reads the body to its end,
 * which may never come, and drops it (body-parser 2, read.js).
 */
export function enforceBodyLimit(parser: RequestHandler, limit: number): RequestHandler {
  return (req, res, next) => {
    let bytes = 0;
    let isOver = false;
    const end = (error?: unknown) => {
      // What was answered already, as too slow, must not be carried out when the rest of it comes after all.
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
    // A parser for which the body is none of its business has said so by now.
    if (isOver) return;
    if (Number(req.headers['content-length']) > limit) end(entityTooLarge(limit));
    // One that does not read yet would lose what came here.
    else if (req.readableFlowing) req.on('data', count);
  };
}

/** As the body parser has it: answerErrors() words it. */
export const entityTooLarge = (limit: number): Error =>
  Object.assign(new Error('too large'), { type: 'entity.too.large', limit });
