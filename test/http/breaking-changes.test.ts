import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type Description, findBreakingChanges } from './breaking-changes.ts';
import { readDocument } from './read-document.ts';

/** What the previous release served at /api/openapi.json. */
const PREVIOUS = join(import.meta.dirname, '../../docs/openapi/previous.json');

let previous: Description;
let current: Description;

beforeAll(async () => {
  previous = JSON.parse(readFileSync(PREVIOUS, 'utf8'));
  current = (await readDocument()) as unknown as Description;
});

/** What was decided nevertheless, and why; until the previous release has it, too. */
const DECIDED = [
  // Browsers are sent to the console.
  'GET /: answer 200 is not text/html any more',
  // Who takes the own part away has none.
  'PUT /api/projects/{pid}: answer 200.role may now be null',
  // As of all jobs: an empty name named nothing.
  'POST /api/remotes/{sid}/batch: the body.name is narrower: minLength 1',
  // It is wider: a folder below the home is taken, too.
  'POST /api/remotes/{sid}/batch: the body.cwd is narrower: pattern "^(\\\\/|~(\\\\/|$))"',
];

test('a client of the previous release can go on', () => {
  expect(findBreakingChanges(previous, current)).toEqual(DECIDED);
});

type Change = (description: Description) => unknown;
type Loose = Record<string, { [member: string]: never }>;

const of = ({ paths }: Description, method: string, path: string) => {
  const found = paths[path]?.[method];
  if (!found) throw new Error(`there is no ${method} ${path}`);
  return found;
};
const schema = ({ components }: Description, name: string) => {
  const found = components.schemas[name];
  if (!found) throw new Error(`there is no schema ${name}`);
  return found as { properties: Loose; required: string[]; [member: string]: unknown };
};
const parameter = (given: Description, method: string, path: string, name: string) => {
  const found = of(given, method, path).parameters.find(one => one.name === name);
  if (!found) throw new Error(`there is no parameter ${name}`);
  return found;
};
const omit = (object: object, name: string) => Reflect.deleteProperty(object, name);
const member = (given: Description, name: string, field: string) =>
  schema(given, name).properties[field] as unknown as Record<string, unknown>;

const LAUNCH = '/api/remotes/launch';
const LAUNCHES = 'POST /api/remotes/launch: ';

const BREAKING: [string, Change, string][] = [
  [
    'a removed operation',
    given => omit(given.paths['/api/jobs/{id}'] ?? {}, 'delete'),
    'DELETE /api/jobs/{id}: the operation is gone',
  ],
  [
    'a renamed operation',
    given => Object.assign(of(given, 'post', LAUNCH), { operationId: 'runCommand' }),
    `${LAUNCHES}launchCommand is called runCommand`,
  ],
  [
    'credentials that were not needed',
    given => omit(of(given, 'get', '/healthz'), 'security'),
    'GET /healthz: it needs credentials now',
  ],
  [
    'a removed parameter',
    given => {
      const list = of(given, 'get', '/api/jobs');
      list.parameters = list.parameters.filter(({ name }) => name !== 'state');
    },
    'GET /api/jobs: the query parameter state is gone',
  ],
  [
    'a newly required parameter',
    given => Object.assign(parameter(given, 'get', '/api/jobs', 'host'), { required: true }),
    'GET /api/jobs: the query parameter host is newly required',
  ],
  [
    'a parameter that takes less',
    given => Object.assign(parameter(given, 'get', '/api/jobs', 'limit').schema, { maximum: 10 }),
    'GET /api/jobs: the query parameter limit is narrower: maximum 10',
  ],
  [
    'a removed field',
    given => omit(schema(given, 'NewCommand').properties, 'cwd'),
    `${LAUNCHES}the body.cwd is gone`,
  ],
  [
    'a newly required field',
    given => schema(given, 'NewCommand').required.push('timeout'),
    `${LAUNCHES}the body.timeout is newly required`,
  ],
  [
    'a field of a narrower type',
    given => Object.assign(member(given, 'NewCommand', 'timeout'), { type: 'integer' }),
    `${LAUNCHES}the body.timeout was number and is integer`,
  ],
  [
    'a field of a narrower enum',
    given => Object.assign(member(given, 'NewToken', 'scope'), { enum: ['read'] }),
    'POST /api/users/-/tokens: the body.scope no longer takes "write"',
  ],
  [
    'an alternative that is not taken any more',
    given => {
      const users = member(given, 'NewHost', 'users') as { anyOf: unknown[] };
      users.anyOf = users.anyOf.slice(0, 1);
    },
    'POST /api/hosts: the body.users no longer takes array',
  ],
  [
    'a body that is not taken any more',
    given => omit(of(given, 'post', LAUNCH).requestBody?.content ?? {}, 'application/json'),
    `${LAUNCHES}no body of application/json is taken any more`,
  ],
  [
    'an answer that is gone',
    given => omit(of(given, 'post', LAUNCH).responses, '202'),
    `${LAUNCHES}there is no answer 202 any more`,
  ],
  [
    'an answer of another media type',
    given => omit(of(given, 'get', '/metrics').responses['200']?.content ?? {}, 'text/plain'),
    'GET /metrics: answer 200 is not text/plain any more',
  ],
  [
    'a removed answer member that was required',
    given => {
      const command = schema(given, 'Command');
      omit(command.properties, 'returncode');
      command.required = command.required.filter(name => name !== 'returncode');
    },
    `${LAUNCHES}answer 200.returncode is gone`,
  ],
  [
    'an answer member that is there no longer always',
    given => {
      const command = schema(given, 'Command');
      command.required = command.required.filter(name => name !== 'errors');
    },
    `${LAUNCHES}answer 200.errors is not always there`,
  ],
  [
    'an answer member of another type',
    given => Object.assign(member(given, 'Command', 'output'), { type: ['string', 'null'] }),
    `${LAUNCHES}answer 200.output may now be null`,
  ],
];

test.each(BREAKING)('%s is found and named', (_, change, named) => {
  const changed = structuredClone(current);
  change(changed);
  expect(findBreakingChanges(current, changed)).toContain(named);
});

const HARMLESS: [string, Change][] = [
  ['an operation', given => Object.assign(given.paths, { '/api/new': of(given, 'get', '/') })],
  [
    'an optional parameter',
    given =>
      of(given, 'get', '/api/jobs').parameters.push({ name: 'new', in: 'query', schema: {} }),
  ],
  [
    'an optional field',
    given => Object.assign(schema(given, 'NewCommand').properties, { added: { type: 'string' } }),
  ],
  [
    'a value that a field takes',
    given => Object.assign(member(given, 'NewToken', 'scope'), { enum: ['read', 'write', 'all'] }),
  ],
  [
    'a member of an answer',
    given => {
      Object.assign(schema(given, 'Command').properties, { added: { type: 'string' } });
      schema(given, 'Command').required.push('added');
    },
  ],
  [
    'a state',
    given => (member(given, 'Job', 'state') as { enum: string[] }).enum.push('suspended'),
  ],
];

test.each(HARMLESS)('%s that is added breaks no client', (_, change) => {
  const changed = structuredClone(current);
  change(changed);
  expect(changed).not.toEqual(current);
  expect(findBreakingChanges(current, changed)).toEqual([]);
});
