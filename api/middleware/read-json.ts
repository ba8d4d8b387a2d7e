import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import express, { type Request, type RequestHandler } from 'express';
import type { WindlassError } from '../../shared/errors/errors.ts';
import type { Config } from '../../shared/settings/config.ts';
import type { RequestMemory } from '../http/request-memory.ts';
import { invalidInput } from '../http/validate.ts';
import { enforceBodyLimit, entityTooLarge } from './enforce-body-limit.ts';
import { countMembers, measureJson } from './measure-json.ts';

type Limits = Pick<
  Config,
  'LIMIT_BODY_BYTES' | 'LIMIT_JSON_DEPTH' | 'LIMIT_JSON_MEMBERS' | 'LIMIT_LIST_ITEMS'
>;

/** The limit on a body from somebody of whom nobody knows yet who it is. */
export const STRANGERS_BYTES = 16 << 10;

/**
 * Parses a JSON body in UTF-8 within the limits. A body of another media type leaves `req.body` undefined. `memory` holds
 * a large one. Without it, for strangers, STRANGERS_BYTES is the limit, and a body must not be compressed: a few bytes
 * would fill a connection's memory.
 */
export function readJson(limits: Limits, memory?: RequestMemory): RequestHandler {
  const depth = limits.LIMIT_JSON_DEPTH;
  const mostMembers = limits.LIMIT_JSON_MEMBERS;
  const most = memory ? Number.POSITIVE_INFINITY : STRANGERS_BYTES;
  const limit = Math.min(limits.LIMIT_BODY_BYTES, most);
  const nameSetting = (error: unknown) =>
    limit === limits.LIMIT_BODY_BYTES ? withSetting(error, 'LIMIT_BODY_BYTES') : error;
  /** As many as the texts of bodies have. */
  const members = new WeakMap<IncomingMessage, number>();
  const parse = express.json({
    limit,
    inflate: memory !== undefined,
    // A bare string or number is JSON too; the schema refuses it.
    strict: false,
    verify: (req, _res, bytes, encoding) => {
      // body-parser would turn it into an empty object.
      if (bytes.length === 0) throw refusal('entity.parse.failed', 'empty');
      if (encoding !== 'utf-8') throw refusal('charset.unsupported', `charset ${encoding}`);
      // The decoder would replace invalid UTF-8, and other text would be stored than was sent.
      if (!isUtf8(bytes)) throw refusal('body.not_utf8', 'not UTF-8');
      const text = measureJson(bytes);
      // Later code may walk the value recursively.
      if (text.depth > depth)
        throw Object.assign(refusal('body.too_deep', 'nested too deep'), { limit: depth });
      // A schema looks at each, which takes ten times as long as to parse it.
      if (text.members > mostMembers)
        throw Object.assign(refusal('body.too_many_members', 'too many members'), {
          limit: mostMembers,
        });
      members.set(req, text.members);
    },
  });
  const read = enforceBodyLimit(parse, limit);
  return async (req, res, next) => {
    // No body, whatever its Content-Type: an operation that needs one refuses it.
    if (req.headers['content-length'] === '0') return next();
    if (req.is('application/json')) {
      const refused = checkContentLength(req, limit);
      if (refused) return next(nameSetting(refused));
      res.locals.releaseBody = await memory?.reserveIfLarge(res, mostBytes(req, limit));
    }
    read(req, res, (error?: unknown) => {
      // Not thrown: nothing catches an error of this callback.
      if (error) return next(nameSetting(error));
      const isDoubled = members.has(req) && members.get(req) !== countMembers(req.body);
      next(isDoubled ? DOUBLED : findLongList(req.body, limits.LIMIT_LIST_ITEMS));
    });
  };
}

/** The error for a body whose announced length exceeds the limit, before it is read. */
export function checkContentLength(req: Request, limit: number): Error | undefined {
  return Number(req.headers['content-length']) > limit ? entityTooLarge(limit) : undefined;
}

/** The most bytes that a body may become: a compressed or chunked one does not announce its size. */
export function mostBytes(req: Request, limit: number): number {
  const length = Number(req.get('Content-Length') ?? Number.NaN);
  const isPlain = (req.get('Content-Encoding') ?? 'identity').toLowerCase() === 'identity';
  return isPlain && length >= 0 ? length : limit;
}

/** Adds the name of the setting to an error of body-parser, which knows the limit's value only. */
export function withSetting(error: unknown, setting: keyof Config): unknown {
  return error instanceof Error ? Object.assign(error, { setting }) : error;
}

/** body-parser keeps the error's type, by which answerErrors() words it. */
function refusal(type: string, message: string): Error {
  return Object.assign(new Error(message), { type });
}

/** JSON.parse keeps the last one, and other programs on the way may have looked at the first. */
const DOUBLED = invalidInput(
  [{ field: 'body', problem: 'has a member twice' }],
  'Give each member of an object once.',
);

/** The error for a list, at any depth, that has too many items. */
function findLongList(body: unknown, limit: number): WindlassError | undefined {
  const field = findList(body, limit);
  if (field === undefined) return undefined;
  const problem = `has more than ${limit} items`;
  return invalidInput(
    [{ field, problem }],
    `Send shorter lists. LIMIT_LIST_ITEMS (${limit}) sets the limit.`,
  );
}

/** The path of such a list. Recursion is limited by the body's depth. */
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
