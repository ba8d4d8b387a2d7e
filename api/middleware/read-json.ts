import { isUtf8 } from 'node:buffer';
import express, { type Request, type RequestHandler } from 'express';
import type { Config } from '../../shared/config.ts';
import type { WindlassError } from '../../shared/errors.ts';
import { invalidInput } from '../http/validate.ts';
import { enforceBodyLimit, entityTooLarge } from './enforce-body-limit.ts';

type Limits = Pick<Config, 'LIMIT_BODY_BYTES' | 'LIMIT_JSON_DEPTH' | 'LIMIT_LIST_ITEMS'>;

/** Reads a JSON body within the limits, UTF-8 alone; what is no JSON leaves `req.body` undefined. */
export function readJson(limits: Limits): RequestHandler {
  const depth = limits.LIMIT_JSON_DEPTH;
  const parse = express.json({
    limit: limits.LIMIT_BODY_BYTES,
    // A bare string or number is JSON too: the schema says what it should have been.
    strict: false,
    verify: (_req, _res, bytes, encoding) => {
      // The body parser would make an empty object of it.
      if (bytes.length === 0) throw refusal('entity.parse.failed', 'empty');
      if (encoding !== 'utf-8') throw refusal('charset.unsupported', `charset ${encoding}`);
      // The decoder behind this would replace what is not UTF-8, and something else would be stored than was sent.
      if (!isUtf8(bytes)) throw refusal('body.not_utf8', 'not UTF-8');
      // Whatever walks the value later may do so by recursion.
      if (isDeeperThan(bytes, depth))
        throw Object.assign(refusal('body.too_deep', 'nested too deep'), { limit: depth });
    },
  });
  const read = enforceBodyLimit(parse, limits.LIMIT_BODY_BYTES);
  return (req, res, next) => {
    // There is no body, whatever its type is said to be: an operation that needs one says so.
    if (req.headers['content-length'] === '0') return next();
    const refused = req.is('application/json') && checkContentLength(req, limits.LIMIT_BODY_BYTES);
    if (refused) return next(withSetting(refused, 'LIMIT_BODY_BYTES'));
    read(req, res, (error?: unknown) => {
      // Not thrown: nobody would catch what this callback throws.
      next(
        error
          ? withSetting(error, 'LIMIT_BODY_BYTES')
          : findLongList(req.body, limits.LIMIT_LIST_ITEMS),
      );
    });
  };
}

/** What says itself that it is too large is refused before it is read. */
export function checkContentLength(req: Request, limit: number): Error | undefined {
  return Number(req.headers['content-length']) > limit ? entityTooLarge(limit) : undefined;
}

/** Which setting a body was too large for: the body parser knows its number alone, and answerErrors() words it. */
export function withSetting(error: unknown, setting: keyof Config): unknown {
  return error instanceof Error ? Object.assign(error, { setting }) : error;
}

/** The body parser takes an error's type over, and answerErrors() words it. */
function refusal(type: string, message: string): Error {
  return Object.assign(new Error(message), { type });
}

/** The refusal of a list that has more items than this, however deep it is. */
function findLongList(body: unknown, limit: number): WindlassError | undefined {
  const field = findList(body, limit);
  if (field === undefined) return undefined;
  const problem = `has more than ${limit} items`;
  return invalidInput(
    [{ field, problem }],
    `Send shorter lists. LIMIT_LIST_ITEMS (${limit}) sets the limit.`,
  );
}

/** The path of such a list. The body's depth is bounded, and so is this recursion. */
function findList(value: unknown, limit: number, path = ''): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value) && value.length > limit) return path || 'body';
  for (const [name, member] of Object.entries(value)) {
    if (typeof member !== 'object') continue;
    const found = findList(member, limit, path ? `${path}.${name}` : name);
    if (found !== undefined) return found;
  }
  return undefined;
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
