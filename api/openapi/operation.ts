import type { Response as PlainResponse, Request } from 'express';
import type { Response } from 'express-serve-static-core';
import { z } from 'zod';
import type { ErrorCode } from '../../shared/errors/errors.ts';
import { parseIdempotencyKey } from '../http/idempotency-key.ts';
import { parseBody, parseOptionalBody, parseQuery } from '../http/validate.ts';
import {
  refuseReadToken,
  refuseTokenCredentials,
  requireAdministrator,
} from '../identity/current-user.ts';
import type { Topic } from './topics.ts';

/** A successful answer of an operation. */
export interface Answer {
  means: string;
  /** Schema of a JSON body. */
  json?: z.ZodType;
  /** Media types of other bodies. */
  types?: string[];
  /** Response headers beside those of every answer, with their meanings. */
  headers?: Record<string, string>;
}

/** The answer of an operation that starts or makes what `Location` names. */
export const answerWithLocation = <Schema extends z.ZodType>(
  means: string,
  Location: string,
  json: Schema,
) => ({ means, json, headers: { Location } });

/** The answer of an operation that makes what `Location` names, and tells no more than its id. */
export const answerWithId = (means: string, Location: string) =>
  answerWithLocation(means, Location, identifier);

const identifier = z.object({ id: z.string() }).meta({ id: 'Identifier' });

/** The answers of sendObject(). */
export const rangeAnswers = (types: string[], all: string, range = 'The range asked for.') => ({
  200: { means: all, types },
  206: { means: range, types },
  304: 'Unchanged.',
});

/** The answers of sendVideo(). */
export const videoAnswers = (all: string, range?: string) => ({
  ...rangeAnswers(['video/mp4', 'video/webm'], all, range),
  302: {
    means: 'Where the service lets its object store send videos: ask there, ranges too.',
    headers: { Location: 'The address of the video, good for an hour.' },
  },
});

/** A request body of another media type than JSON. */
interface NonJsonBody {
  type: string;
  means: string;
  schema?: z.ZodType;
  /**
   * Told in words only: where two bodies have one schema, generated clients send both at once, or neither. For forms of
   * pages, which stand for a body that is described.
   */
  inWords?: true;
}

type Answers = Record<number, Answer | string>;

/** What an answer may hold: what its schema describes, or bytes of its other media types; nothing without either. */
type BodyOf<A> = A extends { json: infer Schema extends z.ZodType }
  ? z.output<Schema> | (A extends { types: string[] } ? Bytes : never)
  : A extends { types: string[] }
    ? Bytes
    : undefined;
type Bytes = string | Buffer;
type Locals = PlainResponse['locals'];

/** Express's response, which takes the declared statuses only, each with its body. Without a status() it is 200. */
export type TypedResponse<A extends Answers> = {
  status<Status extends keyof A & number>(
    code: Status,
  ): Response<BodyOf<A[Status]>, Locals, Status>;
} & Response<BodyOf<A[200]>, Locals, keyof A & number>;

export interface OperationInput<Query, Body, A extends Answers = Answers> {
  req: Request;
  res: TypedResponse<A>;
  /** Parses the query by its schema. Throws `invalid_input`, which names each wrong field. */
  query(): Query;
  /** Parses the JSON body likewise. */
  body(): Body;
}

/**
 * One operation of the interface, the single source for validation, types and /api/openapi.json. The handler calls
 * query() and body(), so that it decides which error comes first.
 */
export interface Operation<Query = unknown, Body = unknown, A extends Answers = Answers> {
  /** A verb with its object, such as `launchCommand`: what clients call it. */
  id: string;
  topic: Topic;
  /** A few words. */
  summary: string;
  /** Further facts for clients. */
  details?: string;
  query?: z.ZodType<Query>;
  body?: z.ZodType<Body>;
  bodies?: NonJsonBody[];
  isBodyOptional?: true;
  /** Request headers with an effect. */
  headers?: (keyof typeof REQUEST_HEADERS)[];
  answers: A;
  /** Errors beside those of every operation. */
  errors?: ErrorCode[];
  /** Who may call it: everyone (no credentials), users (the default), or server administrators; others are refused. */
  for?: 'everyone' | 'users' | 'administrators';
  /**
   * Refuses tokens, whoever made them: for what changes hosts, users, tokens, webhooks and workers. A stolen token must not
   * make or get at credentials that outlive it.
   */
  refusesTokens?: true;
  /** Refuses tokens that may only read, also for GET: for what a host is asked. */
  reachesHost?: true;
  deprecated?: true;
  handle(given: OperationInput<Query, Body, A>): Promise<void> | void;
}

/** Request headers that an operation may honour. */
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

/** Schemas of headers that are refused when malformed; malformed others are ignored. */
export const HEADER_SCHEMAS: Partial<Record<keyof typeof REQUEST_HEADERS, { pattern: string }>> = {
  'Last-Event-ID': { pattern: '^(\\d{1,15}-\\d{1,15}(-end)?)?$' },
  'Idempotency-Key': { pattern: '^[\\x21-\\x7e]{1,255}$' },
};

/**
 * Methods whose query is refused where an operation takes none: `?dryRun=true` would be passed over, and the change made.
 * What proxies and browsers append to a GET is harmless.
 */
export const CHANGES = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);
const NO_QUERY = z.strictObject({});

/** Infers the types of query, body and answers for the handler. */
export function operation<A extends Answers, Query = undefined, Body = undefined>(
  given: Operation<Query, Body, A>,
): Operation<Query, Body, A> {
  return given;
}

/** Calls an operation's handler with the parsers of its query and body. */
export function callOperation(
  {
    query,
    body,
    isBodyOptional,
    headers,
    refusesTokens,
    reachesHost,
    for: callers,
    handle,
  }: Operation,
  req: Request,
  res: PlainResponse,
): Promise<void> | void {
  if (refusesTokens) refuseTokenCredentials(res);
  if (reachesHost) refuseReadToken(res);
  if (callers === 'administrators') requireAdministrator(res);
  // A malformed key is refused by every operation that takes one.
  if (headers?.includes('Idempotency-Key')) parseIdempotencyKey(req);
  if (!query && CHANGES.has(req.method)) parseQuery(req, NO_QUERY);
  return handle({
    req,
    res,
    query: () => query && parseQuery(req, query),
    body: () => body && (isBodyOptional ? parseOptionalBody : parseBody)(req, body),
  });
}
