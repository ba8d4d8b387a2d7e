import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ERRORS, type ErrorCode, toErrorRecord, WindlassError } from './errors.ts';

const codes = Object.keys(ERRORS) as ErrorCode[];

test('every code is a word with an error status and a clean title', () => {
  for (const code of codes) {
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
    const { status, title } = ERRORS[code];
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(600);
    expect(status).not.toBe(422);
    expect(title).toMatch(/^[A-Z][\x20-\x7e]+$/);
  }
});

test('a detail begins with the title, a final full stop aside', () => {
  const detailOf = (code: ErrorCode, detail?: string) =>
    new WindlassError(code, { detail }).message;
  expect(detailOf('agent_required')).toBe('Agent required.');
  expect(detailOf('agent_required', 'Agent required for this.')).toBe('Agent required for this.');
  expect(detailOf('agent_required', 'This session has none.')).toBe(
    'Agent required: This session has none.',
  );
  expect(detailOf('conflict', 'Somebody was faster.')).toBe('Conflict: Somebody was faster.');
  for (const code of codes) {
    const bare = ERRORS[code].title.replace(/\.$/, '');
    expect(detailOf(code, 'Words.').startsWith(bare)).toBe(true);
  }
});

/** They write an error's record themselves, or a reason that only the log tells. */
const WITHOUT_THE_CLASS = [
  'api/openapi/examples/problems.ts',
  'workers/engine/losses.ts',
  'workers/runs/run-state.ts',
];

test('nothing repeats the title that WindlassError adds', () => {
  const root = join(import.meta.dirname, '../..');
  const titles = codes.map(code => ERRORS[code].title.replace(/\.$/, '')).join('|');
  const repeated = new RegExp(`['"\`](${titles}): `);
  const files = ['api', 'workers', 'shared'].flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(
      name => `${folder}/${name}`,
    ),
  );
  const found = files.filter(
    file =>
      /(?<!\.test)\.ts$/.test(file) &&
      !WITHOUT_THE_CLASS.includes(file) &&
      repeated.test(readFileSync(join(root, file), 'utf8')),
  );
  expect(found).toEqual([]);
});

test('a record has what clients see, and no message of an unknown error', () => {
  const error = new WindlassError('cancelled', { hint: 'Try.', cause: new Error('secret') });
  expect(error.toRecord()).toEqual({ code: 'cancelled', detail: 'Cancelled.', hint: 'Try.' });
  expect(new WindlassError('cancelled').toRecord()).toEqual({
    code: 'cancelled',
    detail: 'Cancelled.',
  });
  for (const thrown of [new Error('secret'), 'secret', undefined])
    expect(toErrorRecord(thrown)).toEqual({ code: 'internal', detail: 'Internal error' });
});

test('only codes marked so in the table are retryable', () => {
  expect(codes.filter(code => new WindlassError(code).retryable)).toEqual([
    'remote_connection_failed',
    'unavailable',
  ]);
});
