import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError } from '../tools.ts';

const at = (words: string) => `arrays: ${words}`;
const ARRAY = 'GET /models/{mid}/arrays/{aid}';

/** Arrays of a model: what they are, and slices of them. */
export const ARRAYS: Row[] = [
  row(
    at('metadata {shape, type, unit?}; ?slice=0:10,5 {shape, values}'),
    `${ARRAY}, ${ARRAY}/metadata, ${ARRAY}/data`,
    async ({ ask, make, world }) => {
      const path = await make.array(world.name('array'));
      expectAnswer(await ask('GET', `${path}/metadata`), 200, {
        json: { shape: [2, 3], type: 'integer', min: 0, max: 5 },
      });
      for (const [slice, shape, values] of [
        ['', [2, 3], [0, 1, 2, 3, 4, 5]],
        ['?slice=1', [3], [3, 4, 5]],
        ['?slice=:,1', [2], [1, 4]],
        ['?slice=0:10,1:', [2, 2], [1, 2, 4, 5]],
        ['?slice=1,2', [], [5]],
        ['?slice=1:1', [0, 3], []],
      ] as const)
        expectAnswer(await ask('GET', path + slice), 200, { json: { shape, values } });
      const whole = await ask('GET', path);
      const headers = { 'If-None-Match': String(whole.headers.etag) };
      expectAnswer(await ask('GET', `${path}?slice=1`, { headers }), 304);
      for (const slice of ['2', ':,3', '0,0,0', '-1', '0:2:1', 'x', '0,'])
        expectError(await ask('GET', `${path}?slice=${slice}`), 400, { code: 'invalid_input' });
      const data = await ask('GET', `${path}/data`, { headers: { Range: 'bytes=1-5' } });
      expectAnswer(data, 206, { type: 'application/octet-stream' });
      expect(data.text).toBe('NUMPY');
      expectError(await ask('GET', `${path}-none/metadata`), 404, {
        code: 'not_found',
      });
    },
  ),
  row(
    at('DELETE of an array 204'),
    'DELETE /models/{mid}/arrays/{aid}',
    async ({ ask, make, world }) => {
      const path = await make.array(world.name('array'));
      expectError(await ask('DELETE', path.replace('arrays', 'tables')), 404, {
        code: 'not_found',
      });
      expectAnswer(await ask('DELETE', path), 204);
      expectError(await ask('DELETE', path), 404, { code: 'not_found' });
    },
  ),
];
