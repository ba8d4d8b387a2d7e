import { z } from 'zod';
import { ERRORS, type ErrorCode } from '../../shared/errors/errors.ts';
import type { RoutedOperation } from '../http/resource.ts';
import { jobEvent } from '../jobs/streaming/job-events.ts';
import { Components } from './components.ts';
import { EXAMPLES } from './examples/all.ts';
import type { Json, JsonObject } from './json.ts';
import {
  type Answer,
  CHANGES,
  HEADER_SCHEMAS,
  type Operation,
  REQUEST_HEADERS,
} from './operation.ts';
import { describeParameter } from './parameters.ts';
import { problem } from './problem.ts';
import { TOPIC_NAMES, TOPICS } from './topics.ts';

const PROBLEM = 'application/problem+json';
/** Errors of every operation. */
const COMMON_ERRORS: ErrorCode[] = [
  'request_timeout',
  'address_too_long',
  'headers_too_large',
  'internal',
  'unavailable',
  'insufficient_storage',
];
/** Further errors of every operation that needs credentials. */
const CREDENTIAL_ERRORS: ErrorCode[] = ['unauthorized', 'too_many_requests'];

const WITHOUT_TOKEN: Json[] = [{ basic: [] }, { cookie: [] }];

/**
 * Makes the OpenAPI 3.1 document from the operations. `prefix` is that of the documented paths: /api, or none.
 */
export function createOpenApiDocument(operations: RoutedOperation[], version: string) {
  const components = new Components(EXAMPLES);
  components.toSchema(problem, 'output');
  // No media type says what an event stream has in it.
  components.toSchema(jobEvent, 'output');
  const paths: Record<string, JsonObject> = {};
  for (const { path, method, operation } of operations) {
    const template = toTemplate(path);
    paths[template] ??= {};
    paths[template][method] = describeOperation(components, { path: template, method, operation });
  }
  return {
    openapi: '3.1.0' as const,
    info: {
      title: 'Windlass',
      version,
      description:
        'Hauls long work off the request path: remote commands, videos made from remote frames, uploads parsed into models.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    security: [...WITHOUT_TOKEN, { token: [] }],
    tags: TOPIC_NAMES.map(name => ({ name, description: TOPICS[name].means })),
    paths,
    components: {
      securitySchemes: {
        basic: { type: 'http', scheme: 'basic' },
        token: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An API token, or an access token of the identity provider where OIDC_AUDIENCE is set.',
        },
        cookie: { type: 'apiKey', in: 'cookie', name: 'serviceauth' },
      },
      schemas: components.all(),
    },
  };
}

/** `/projects/:pid/cache/*key` becomes `/projects/{pid}/cache/{key}`; optional segments are included. */
function toTemplate(path: string): string {
  return path.replace(/[{}]/g, '').replace(/[:*](\w+)/g, '{$1}');
}

interface Described {
  path: string;
  method: string;
  operation: Operation;
}

function describeOperation(components: Components, described: Described): JsonObject {
  const { path, operation } = described;
  const body = describeBody(components, operation);
  return {
    operationId: operation.id,
    summary: operation.summary,
    ...(operation.details ? { description: operation.details } : {}),
    tags: [operation.topic],
    parameters: [
      ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => describeParameter(name)),
      ...describeQuery(components, operation),
      ...(operation.headers ?? []).map(name => ({
        name,
        in: 'header',
        description: REQUEST_HEADERS[name],
        schema: { type: 'string', ...HEADER_SCHEMAS[name] },
      })),
    ],
    ...(body ? { requestBody: body } : {}),
    responses: describeAnswers(components, described),
    ...(operation.for === 'everyone' ? { security: [] } : {}),
    ...(operation.refusesTokens ? { security: WITHOUT_TOKEN } : {}),
    ...(operation.deprecated ? { deprecated: true } : {}),
  };
}

function describeQuery(components: Components, { query }: Operation): JsonObject[] {
  if (!query) return [];
  if (isOfAnyNames(query))
    return [
      {
        name: 'query',
        in: 'query',
        style: 'form',
        explode: true,
        description: 'Any names and values: `a=1&b=2` of `{"a": 1, "b": 2}`.',
        schema: components.toSchema(query, 'input'),
      },
    ];
  const { properties = {}, required = [] } = components.toSchema(query, 'input') as {
    properties?: Record<string, JsonObject>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema,
  }));
}

/** What an event says is taken as it is. */
const isOfAnyNames = (query: Operation['query']) => query instanceof z.ZodRecord;

function describeBody(
  components: Components,
  { body, bodies = [], isBodyOptional }: Operation,
): JsonObject | undefined {
  const content: JsonObject = {};
  if (body) content['application/json'] = { schema: components.toSchema(body, 'input') };
  const told: string[] = [];
  for (const { type, means, schema, inWords } of bodies) {
    if (inWords) {
      told.push(`Or as ${type}: ${means}`);
      continue;
    }
    content[type] = {
      schema: schema
        ? { ...components.toSchema(schema, 'input'), description: means }
        : { description: means },
    };
  }
  if (Object.keys(content).length === 0) return undefined;
  return {
    ...(told.length > 0 ? { description: told.join(' ') } : {}),
    required: !isBodyOptional,
    content,
  };
}

function describeAnswers(
  components: Components,
  { path, method, operation }: Described,
): JsonObject {
  const responses: JsonObject = {};
  for (const [status, answer] of Object.entries(operation.answers))
    responses[status] = describeAnswer(
      components,
      typeof answer === 'string' ? { means: answer } : answer,
    );
  const { query, body, headers = [], errors = [] } = operation;
  const codes = new Set(COMMON_ERRORS);
  const addIf = (applies: boolean, ...more: ErrorCode[]) => {
    if (applies) for (const code of more) codes.add(code);
  };
  addIf(operation.for !== 'everyone', ...CREDENTIAL_ERRORS);
  addIf(path.includes('{'), 'bad_request');
  const isChange = CHANGES.has(method.toUpperCase());
  addIf((isChange || Boolean(body ?? query)) && !isOfAnyNames(query), 'invalid_input');
  addIf(Boolean(body), 'bad_request', 'payload_too_large', 'unsupported_media_type');
  // A read token, and a browser's request from a page of another site, may not write.
  addIf(operation.for === 'administrators' || method !== 'get', 'forbidden');
  addIf(headers.includes('Idempotency-Key'), 'invalid_input', 'idempotency_conflict');
  addIf(headers.includes('If-Match'), 'precondition_failed');
  addIf(true, ...errors);
  for (const code of codes) {
    const { status, title } = ERRORS[code];
    const present = responses[status] as JsonObject | undefined;
    const words = `\`${code}\`: ${title}`;
    responses[status] = {
      description: present ? `${present.description}; ${words}` : words,
      content: {
        ...((present?.content as JsonObject | undefined) ?? {}),
        [PROBLEM]: { schema: { $ref: '#/components/schemas/Problem' } },
      },
    };
  }
  return responses;
}

function describeAnswer(
  components: Components,
  { means, json, types = [], headers = {} }: Answer,
): JsonObject {
  const content: JsonObject = {};
  if (json) content['application/json'] = { schema: components.toSchema(json, 'output') };
  for (const type of types) content[type] = {};
  return {
    description: means,
    ...(Object.keys(content).length > 0 ? { content } : {}),
    ...(Object.keys(headers).length > 0
      ? {
          headers: Object.fromEntries(
            Object.entries(headers).map(([name, description]) => [
              name,
              { description, schema: { type: 'string' } },
            ]),
          ),
        }
      : {}),
  };
}
