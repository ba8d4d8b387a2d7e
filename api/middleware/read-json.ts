import { isUtf8 } from 'node:buffer';
import express, { type RequestHandler } from 'express';

const LIMIT_BYTES = 1 << 20;
const DEPTH = 100;

/** Reads a JSON body of at most 1 MiB, UTF-8 alone, nested at most 100 deep; what is no JSON leaves `req.body` undefined. */
export function readJson(): RequestHandler {
  return express.json({
    limit: LIMIT_BYTES,
    // A bare string or number is JSON too: the schema says what it should have been.
    strict: false,
    verify: (_req, _res, bytes, encoding) => {
      if (encoding !== 'utf-8') throw refusal('charset.unsupported', `charset ${encoding}`);
      // The decoder behind this would replace what is not UTF-8, and something else would be stored than was sent.
      if (!isUtf8(bytes)) throw refusal('body.not_utf8', 'not UTF-8');
      // Whatever walks the value later may do so by recursion.
      if (isDeeperThan(bytes, DEPTH)) throw refusal('body.too_deep', 'nested too deep');
    },
  });
}

/** The body parser takes an error's type over, and answerErrors() words it. */
function refusal(type: string, message: string): Error {
  return Object.assign(new Error(message), { type });
}

/** Whether arrays and objects of a JSON text, valid or not, are nested deeper than this. */
export function isDeeperThan(json: Buffer, limit: number): boolean {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < json.length; at++) {
    switch (json[at]) {
      case 0x22: // "
        inString = !inString;
        break;
      case 0x5c: // \
        if (inString) at++;
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (!inString && ++depth > limit) return true;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        if (!inString) depth--;
    }
  }
  return false;
}
