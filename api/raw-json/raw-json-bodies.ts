import express, { type RequestHandler } from 'express';
import { z } from 'zod';
import type { Config } from '../../shared/settings/config.ts';
import type { Exchange } from '../http/exchange.ts';
import type { RequestMemory } from '../http/request-memory.ts';
import { invalidInput, parseBody } from '../http/validate.ts';
import { enforceBodyLimit } from '../middleware/enforce-body-limit.ts';
import { checkContentLength, mostBytes, withSetting } from '../middleware/read-json.ts';
import { ThreadedValidator } from './threaded-validator.ts';
import type { BodyShape, RawJsonResult } from './validate-raw-json.ts';

type Limits = Pick<Config, 'LIMIT_VALUE_BYTES' | 'LIMIT_JSON_DEPTH'>;

/** Reads JSON bodies that are stored byte for byte as they were sent. */
export class RawJsonBodies {
  readonly #memory: RequestMemory;
  readonly #reader = new ThreadedValidator();
  readonly #readRaw: RequestHandler;
  readonly #maxBytes: number;
  readonly #maxDepth: number;

  constructor({ LIMIT_VALUE_BYTES, LIMIT_JSON_DEPTH }: Limits, memory: RequestMemory) {
    this.#memory = memory;
    this.#maxBytes = LIMIT_VALUE_BYTES;
    this.#maxDepth = LIMIT_JSON_DEPTH;
    const parse = express.raw({
      limit: LIMIT_VALUE_BYTES,
      type: req => /^application\/json\s*(;|$)/i.test(req.headers['content-type'] ?? ''),
    });
    this.#readRaw = enforceBodyLimit(parse, LIMIT_VALUE_BYTES);
  }

  /** The text of a valid body. Throws the errors of body-parser and of a schema. */
  async read({ req, res }: Exchange, shape: BodyShape): Promise<{ text: string; input?: boolean }> {
    const bytes = await this.#receive({ req, res });
    const exact = await this.#reader.read(bytes, shape, this.#maxDepth);
    if ('text' in exact) return exact;
    throw refusal(exact, this.#maxDepth);
  }

  async #receive({ req, res }: Exchange): Promise<Buffer> {
    const charset = /;\s*charset="?([^\s;"]+)/i.exec(req.get('Content-Type') ?? '')?.[1];
    if (charset && !/^utf-?8$/i.test(charset)) throw ofBodyParser('charset.unsupported');
    const tooLarge = checkContentLength(req, this.#maxBytes);
    if (tooLarge) throw withSetting(tooLarge, 'LIMIT_VALUE_BYTES');
    await this.#memory.reserveIfLarge(res, mostBytes(req, this.#maxBytes));
    await new Promise<void>((resolve, reject) => {
      this.#readRaw(req, res, (error?: unknown) =>
        error ? reject(withSetting(error, 'LIMIT_VALUE_BYTES')) : resolve(),
      );
    });
    const body: unknown = req.body;
    req.body = undefined;
    // No body, or another media type: parseBody() throws the error.
    return Buffer.isBuffer(body) ? body : parseBody(req, z.never());
  }
}

function refusal(exact: Exclude<RawJsonResult, { text: string }>, limit: number): Error {
  if ('refused' in exact) return Object.assign(ofBodyParser(exact.refused), { limit });
  if ('notJson' in exact)
    return invalidInput(
      [{ field: 'body', problem: `is not JSON: ${exact.notJson}` }],
      'Send JSON (RFC 8259) in UTF-8.',
    );
  return invalidInput(exact.wrong, 'Correct the named fields.');
}

/** An error as body-parser throws it, for answerErrors(). */
const ofBodyParser = (type: string) => Object.assign(new Error(type), { type });
