import type { Request, Response } from 'express';
import type { z } from 'zod';
import type { ErrorCode } from '../../shared/errors.ts';
import { parseIdempotencyKey } from '../http/idempotency-key.ts';
import { parseBody, parseQuery } from '../http/validate.ts';

/** What an operation answers with where it succeeds. */
export interface Answer {
  means: string;
  /** A JSON body. */
  json?: z.ZodType;
  /** Or bodies of other media types. */
  types?: string[];
  /** Response headers beside those of every answer, and what they say. */
  headers?: Record<string, string>;
}

/** A body that is no JSON, by media type. */
export interface NonJsonBody {
  type: string;
  means: string;
  schema?: z.ZodType;
}

export interface OperationInput<Query, Body> {
  req: Request;
  res: Response;
  /** The query, by its schema; reading it throws `invalid_input`, which names each wrong field. */
  query(): Query;
  /** The JSON body, by its schema; likewise. */
  body(): Body;
}

/**
 * One operation of the interface: said once, for validation, for types and for the description at /api/openapi.json.
 * Schemas are read when the handler asks for them, so that it decides what is told first.
 */
export interface Operation<Query = unknown, Body = unknown> {
  /** What it does, in a few words. */
  summary: string;
  /** What else a client must know. */
  details?: string;
  query?: z.ZodType<Query>;
  body?: z.ZodType<Body>;
  bodies?: NonJsonBody[];
  /** Request headers that it honours. */
  headers?: (keyof typeof REQUEST_HEADERS)[];
  answers: Record<number, Answer | string>;
  /** Beside those that any operation can fail with. */
  errors?: ErrorCode[];
  /** Who may: everyone (no credentials), any user (the default), or server administrators. */
  for?: 'everyone' | 'users' | 'administrators';
  deprecated?: true;
  handle(given: OperationInput<Query, Body>): Promise<void> | void;
}

/** Request headers with a meaning of their own here. */
export const REQUEST_HEADERS = {
  'If-None-Match': 'Entity tags that the client has (RFC 9110, 13.1.2).',
  'If-Match': 'Entity tag of the record that the change is meant for (RFC 9110, 13.1.1).',
  'If-Range': 'Entity tag that the range is meant for (RFC 9110, 13.1.5).',
  Range: 'One range of bytes (RFC 9110, 14.2).',
  Prefer: 'respond-async, or wait=SECONDS (RFC 7240): where a job is looked at, 300 at most.',
  'Idempotency-Key': 'The same key again gives the same job, for 24 hours.',
  'Last-Event-ID': 'The last event that was seen; the stream goes on after it.',
  'Content-Digest': 'sha-256 of the body, verified (RFC 9530).',
} as const;

/** What of them is refused otherwise; the rest is passed over where it does not parse. */
export const HEADER_SCHEMAS: Partial<Record<keyof typeof REQUEST_HEADERS, { pattern: string }>> = {
  'Last-Event-ID': { pattern: '^(\\d{1,15}-\\d{1,15})?$' },
  'Idempotency-Key': { pattern: '^[\\x21-\\x7e]{1,255}$' },
};

/** Infers the types of query and body for the handler. */
export function operation<Query = undefined, Body = undefined>(
  given: Operation<Query, Body>,
): Operation<Query, Body> {
  return given;
}

/** Calls an operation's handler with what its schemas make of the request. */
export function callOperation(
  { query, body, headers, handle }: Operation,
  req: Request,
  res: Response,
): Promise<void> | void {
  // Also where nothing comes of it.
  if (headers?.includes('Idempotency-Key')) parseIdempotencyKey(req);
  return handle({
    req,
    res,
    query: () => query && parseQuery(req, query),
    body: () => body && parseBody(req, body),
  });
}
