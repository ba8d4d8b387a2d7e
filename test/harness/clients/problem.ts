import { expect } from 'vitest';
import { expectNoFrame } from './no-frame.ts';

/** A problem document (RFC 9457) as this service sends it. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  hint?: string;
  requestId: string;
  fields?: { field: string; problem: string }[];
}

/** Holds an answer against everything that every error of the service must be. */
export async function expectProblem(
  response: Response,
  status: number,
  code: string,
): Promise<Problem> {
  const problem = (await response.json()) as Problem;
  expect([response.status, problem.code, problem.detail]).toEqual([
    status,
    code,
    expect.any(String),
  ]);
  expect(response.headers.get('Content-Type')).toBe('application/problem+json; charset=utf-8');
  expectNoFrame(response);
  expect(problem).toMatchObject({ status, title: expect.any(String), type: expect.any(String) });
  expect(problem.requestId).toBe(response.headers.get('X-Request-Id'));
  const oneLine = (text: string) => text.replace(/[^\x20-\x7e]+/g, '?');
  const message = response.headers.get('X-Service-Message');
  expect(message).toMatch(/^[\x20-\x7e]+$/);
  expect(message).toBe(oneLine(problem.detail));
  const hint = response.headers.get('X-Service-Hint');
  expect(hint).toBe(problem.hint === undefined ? null : oneLine(problem.hint));
  return problem;
}
