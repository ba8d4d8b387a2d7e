import express, { type Request, type RequestHandler, type Response } from 'express';
import { z } from 'zod';
import type { Config } from '../../shared/config.ts';
import { WindlassError } from '../../shared/errors.ts';
import { ByteBudget } from '../concurrency/byte-budget.ts';
import { invalidInput, parseBody } from '../http/validate.ts';
import { currentUser } from '../identity/current-user.ts';
import { enforceBodyLimit } from '../middleware/enforce-body-limit.ts';
import { checkContentLength, nameSetting } from '../middleware/read-json.ts';
import type { Exact, Shape } from './read-exactly.ts';
import { ThreadReader } from './thread-reader.ts';

type Limits = Pick<Config, 'LIMIT_VALUE_BYTES' | 'LIMIT_JSON_DEPTH'>;

/** JSON bodies that are kept as they were sent, and the memory that these and the values in answers may take. */
export class ExactBodies {
  readonly #budget = new ByteBudget({ perUser: 32 << 20, inAll: 128 << 20, waitMs: 30_000 });
  readonly #reader = new ThreadReader();
  readonly #readRaw: RequestHandler;
  readonly #maxBytes: number;
  readonly #maxDepth: number;

  constructor({ LIMIT_VALUE_BYTES, LIMIT_JSON_DEPTH }: Limits) {
    this.#maxBytes = LIMIT_VALUE_BYTES;
    this.#maxDepth = LIMIT_JSON_DEPTH;
    const parse = express.raw({
      limit: LIMIT_VALUE_BYTES,
      type: req => /^application\/json\s*(;|$)/i.test(req.headers['content-type'] ?? ''),
    });
    this.#readRaw = enforceBodyLimit(parse, LIMIT_VALUE_BYTES);
  }

  /** Waits until an answer of so many bytes may be made; they are given back when it was sent or its client has left. */
  async makeRoom(res: Response, bytes: number): Promise<void> {
    const gone = new AbortController();
    const leave = () =>
      gone.abort(new WindlassError('bad_request', { detail: 'The request ended early.' }));
    res.once('close', leave);
    // Who left while this waited for the database is never told of the close.
    if (res.closed || res.destroyed) leave();
    const giveBack = await this.#budget.take(currentUser(res).username, bytes, gone.signal);
    res.once('close', giveBack);
    if (res.closed || res.destroyed) giveBack();
  }

  /** The body's text by its shape; throws what the body parser or a schema would. */
  async read(req: Request, res: Response, shape: Shape): Promise<{ text: string; input: boolean }> {
    const bytes = await this.#receive(req, res);
    const exact = await this.#reader.read(bytes, shape, this.#maxDepth);
    if ('text' in exact) return exact;
    throw refusal(exact, this.#maxDepth);
  }

  async #receive(req: Request, res: Response): Promise<Buffer> {
    const charset = /;\s*charset="?([^\s;"]+)/i.exec(req.get('Content-Type') ?? '')?.[1];
    if (charset && !/^utf-?8$/i.test(charset)) throw ofBodyParser('charset.unsupported');
    const length = Number(req.get('Content-Length') ?? Number.NaN);
    const isPlain = (req.get('Content-Encoding') ?? 'identity').toLowerCase() === 'identity';
    // What is compressed or comes in chunks may be of any size.
    const most = isPlain && length >= 0 ? length : this.#maxBytes;
    const tooLarge = checkContentLength(req, this.#maxBytes);
    if (tooLarge) throw nameSetting(tooLarge, 'LIMIT_VALUE_BYTES');
    await this.makeRoom(res, most);
    await new Promise<void>((resolve, reject) => {
      this.#readRaw(req, res, (error?: unknown) =>
        error ? reject(nameSetting(error, 'LIMIT_VALUE_BYTES')) : resolve(),
      );
    });
    const body: unknown = req.body;
    req.body = undefined;
    // There is no body of the right type; parseBody() says so.
    return Buffer.isBuffer(body) ? body : parseBody(req, z.never());
  }
}

function refusal(exact: Exclude<Exact, { text: string }>, limit: number): Error {
  if ('refused' in exact) return Object.assign(ofBodyParser(exact.refused), { limit });
  if ('notJson' in exact)
    return invalidInput(
      [{ field: 'body', problem: `is not JSON: ${exact.notJson}` }],
      'Send JSON (RFC 8259) in UTF-8.',
    );
  return invalidInput(exact.wrong, 'Correct the named fields.');
}

/** An error as the body parser makes them: answerErrors() words it. */
const ofBodyParser = (type: string) => Object.assign(new Error(type), { type });
