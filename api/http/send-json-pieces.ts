import type { Response } from 'express';
import { waitForDrain } from '../../shared/process/wait-for-drain.ts';

/** Characters of one write. */
const PIECE = 64 << 10;

/** Sends texts that make up one JSON text, as the client reads. A short answer is sent at once, with its length. */
export async function sendJsonPieces(res: Response, texts: AsyncIterable<string>): Promise<void> {
  res.type('json');
  let piece = '';
  for await (const text of texts) {
    piece += text;
    if (piece.length < PIECE) continue;
    if (!res.write(piece) && !(await waitForDrain(res))) return;
    piece = '';
  }
  res.end(piece);
}
