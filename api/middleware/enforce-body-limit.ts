import type { RequestHandler } from 'express';
import { WindlassError } from '../../shared/errors/errors.ts';

/**
 * Node keeps some 600 bytes for each piece of a body, which may be a chunk of one byte. A body may have FEW_PIECES,
 * and one more for each PIECE_BYTES.
 */
const FEW_PIECES = 4_096;
const PIECE_BYTES = 64;

/**
 * Makes a body parser refuse a body as soon as more bytes than the limit are announced or have arrived. By itself it
 * first reads the whole body and drops it (body-parser 2, read.js): an endless one would never be answered.
 */
export function enforceBodyLimit(parser: RequestHandler, limit: number): RequestHandler {
  return (req, res, next) => {
    let bytes = 0;
    let pieces = 0;
    let isOver = false;
    const end = (error?: unknown) => {
      // A request answered as too slow must not be handled when the rest of its body arrives after all.
      if (isOver || res.headersSent) return;
      isOver = true;
      req.off('data', count);
      next(error);
    };
    /** What is still to come, and may have no end, reaches nobody: the parser would keep it. */
    const refuse = (error: unknown) => {
      req.unpipe();
      req.removeAllListeners('data');
      res.locals.isBodyRefused = true;
      end(error);
    };
    const count = (piece: Buffer) => {
      bytes += piece.length;
      if (bytes > limit) refuse(entityTooLarge(limit));
      else if (++pieces > FEW_PIECES + bytes / PIECE_BYTES) refuse(tooManyPieces());
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

const tooManyPieces = () =>
  new WindlassError('bad_request', {
    detail: 'the body comes in too many small pieces.',
    hint: 'Send larger chunks, or all of it at once with a Content-Length.',
  });
