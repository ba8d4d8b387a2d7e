import { STATUS_CODES } from 'node:http';
import { expect } from 'vitest';
import type { Problem } from '../harness/clients/problem.ts';
import { waitFor } from '../harness/wait-for.ts';
import type { Fixtures } from './fixtures.ts';
import { type Answer, type Options, send } from './send.ts';
import { look, type Seen } from './trace.ts';
import type { World } from './world.ts';

const ONCE = /^\/(?:$|\?|healthz|readyz|metrics|admin\/queues|api\/)/;

export type Prefix = '' | '/api';

/** What one run of a case asks with, under one of the two prefixes. */
export class Tools {
  readonly world: World;
  readonly make: Fixtures;
  readonly prefix: Prefix;
  /** The answers, to be compared with those under the other prefix. */
  readonly seen: Seen[] = [];
  readonly asked = new Set<string>();

  constructor(world: World, prefix: Prefix) {
    this.world = world;
    this.make = world.make;
    this.prefix = prefix;
  }

  /** Sends a request, `path` without the prefix; the answer is held against the description. */
  readonly ask = async (method: string, path: string, options: Options = {}): Promise<Answer> => {
    const answer = await this.look(method, path, options);
    this.seen.push(look(method, answer));
    return answer;
  };

  /** Does what ask() does, for what is asked an unknown number of times. */
  readonly look = async (method: string, path: string, options: Options = {}): Promise<Answer> => {
    const target = ONCE.test(path) ? path : `${this.prefix}${path}`;
    const as = options.as === undefined ? this.world.user : options.as;
    const answer = await send(this.world.url, { ...options, as, method, target });
    // That of /readyz is a record of what is unreachable, whatever its status.
    if (answer.status >= 400 && method !== 'HEAD' && path !== '/readyz') holdProblem(answer);
    if (answer.type === 'application/json') holdTimes(answer);
    const operation = this.world.description.hold(method, path, answer);
    if (operation) this.asked.add(operation);
    return answer;
  };

  /** Asks until the answer is as wanted. */
  readonly poll = (
    path: string,
    isWanted: (answer: Answer) => boolean,
    timeoutMs = 60_000,
  ): Promise<Answer> =>
    waitFor(
      async () => {
        const answer = await this.look('GET', path);
        return isWanted(answer) ? answer : undefined;
      },
      { what: `GET ${path} to be as wanted`, timeoutMs, intervalMs: 50 },
    );

  /** The job once it has ended. */
  readonly ended = async (id: string): Promise<Record<string, unknown>> => {
    const isEnded = (answer: Answer) =>
      !['queued', 'running'].includes(String(answer.json().state));
    return (await this.poll(`/jobs/${id}`, isEnded)).json();
  };
}

/** These two are `application/json`, whatever other errors are. */
const PLAIN = ['upload_incomplete', 'client_confused'];

/** What every error of the service is (RFC 9457, and docs/errors.md). */
function holdProblem(answer: Answer): void {
  const problem = answer.json<Problem>();
  expect(answer.type).toBe(`application/${PLAIN.includes(problem.code) ? '' : 'problem+'}json`);
  expect(problem).toMatchObject({
    type: `/api/docs#${problem.code}`,
    title: expect.stringMatching(/./),
    status: answer.status,
    requestId: expect.stringMatching(/./),
  });
  expect(answer.headers['x-request-id']).toBe(problem.requestId);
  expect(problem.code).toMatch(/^[a-z]+(_[a-z]+)*$/);
  // What nobody foresaw; nothing that a case sends may lead to it.
  expect(problem.code).not.toBe('internal');
  expect(answer.text).not.toMatch(/\\n\s+at /);
  expect(problem.detail.startsWith(problem.title.replace(/\.$/, ''))).toBe(true);
  const line = (text: string) => text.replace(/[^\x20-\x7e]+/g, '?').slice(0, 1_000);
  expect(answer.headers['x-service-message']).toBe(line(problem.detail));
  expect(answer.headers['x-service-hint']).toBe(problem.hint && line(problem.hint));
  if (answer.status === 401) expect(answer.headers['www-authenticate']).toMatch(/^(Basic|Bearer)/);
  if (answer.status === 405) expect(answer.headers.allow).toMatch(/^[A-Z]+(, [A-Z]+)*$/);
  if (answer.status === 429 || answer.status === 503)
    expect(answer.headers['retry-after']).toMatch(/^\d+$/);
}

const TIMES = ['created', 'updated', 'accessed', 'expires', 'started', 'finished'];

/** Times are ISO 8601 in UTC, everywhere. */
function holdTimes(answer: Answer): void {
  if (answer.bytes.length === 0) return;
  JSON.parse(answer.text, (name, value) => {
    if (TIMES.includes(name) && typeof value === 'string')
      expect([name, value]).toEqual([name, new Date(value).toISOString()]);
    return value;
  });
}

/** An error as the documents word it; its reason phrase is the standard one unless given. */
export function expectError(
  answer: Answer,
  status: number,
  {
    title,
    code,
    reason = STATUS_CODES[status],
  }: { title?: string; code?: string; reason?: string },
): Problem {
  const problem = answer.json<Problem>();
  expect([answer.status, answer.reason]).toEqual([status, reason]);
  if (title !== undefined) expect(problem.title.replace(/\.$/, '')).toBe(title.replace(/\.$/, ''));
  if (code !== undefined) expect(problem.code).toBe(code);
  return problem;
}

/** Status, reason phrase (the standard one unless given) and, where given, the whole JSON body. */
export function expectAnswer(
  answer: Answer,
  status: number,
  {
    reason = STATUS_CODES[status],
    json,
    type,
  }: { reason?: string; json?: unknown; type?: string } = {},
): void {
  const told = answer.status === status ? '' : answer.text.slice(0, 500);
  expect([answer.status, answer.reason, told]).toEqual([status, reason, '']);
  if (type !== undefined) expect(answer.type).toBe(type);
  if (json !== undefined) expect(answer.json()).toEqual(json);
}
