import { tableFromIPC } from 'apache-arrow';
import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError } from '../tools.ts';

const at = (words: string) => `tables and files: ${words}`;
const TABLE = 'GET /models/{mid}/tables/{aid}';

/** Tables and files of a model. */
export const TABLES: Row[] = [
  row(
    at('metadata {rows, columns: [{name, type, min, max, nulls}], dialect}'),
    `${TABLE}/metadata`,
    async ({ ask, make }) => {
      expectAnswer(await ask('GET', `${await make.table()}/metadata`), 200, {
        json: {
          rows: 50,
          columns: [
            { name: 'n', type: 'integer', min: 0, max: 49, nulls: 0 },
            { name: 'word', type: 'text', min: 'even', max: 'odd', nulls: 0 },
            { name: 'nothing', type: expect.any(String), min: null, max: null, nulls: 50 },
          ],
          dialect: expect.objectContaining({ encoding: 'utf-8', delimiter: ',', header: true }),
        },
      });
    },
  ),
  row(
    at('rows?offset=&limit=&columns= {offset, columns, rows}'),
    `${TABLE}/rows`,
    async ({ ask, make }) => {
      const path = `${await make.table()}/rows`;
      const whole = (await ask('GET', path)).json<{ rows: unknown[] }>();
      expect(whole).toMatchObject({ offset: 0, columns: ['n', 'word', 'nothing'] });
      expect([whole.rows.length, whole.rows[1]]).toEqual([50, [1, 'odd', null]]);
      const page = await ask('GET', `${path}?offset=48&limit=5&columns=word,n`);
      expect(page.json()).toMatchObject({
        offset: 48,
        columns: ['word', 'n'],
        rows: [
          ['even', 48],
          ['odd', 49],
        ],
      });
      expect((await ask('GET', `${path}?offset=50`)).json()).toMatchObject({ rows: [] });
    },
  ),
  row(
    at('rows: limit 100; of a text the 20 commonest values'),
    `${TABLE}/rows, ${TABLE}/histogram`,
    async ({ ask, make, world }) => {
      const aid = world.name('long');
      const lines = Array.from({ length: 150 }, (_, n) => `${n},${n < 3 ? 'often' : `w${n}`}`);
      await make.parse(aid, `n,word\n${lines.join('\n')}\n`, 'csv');
      const path = `/models/${(await make.projectWithModel()).mid}/tables/${aid}`;
      const { rows } = (await ask('GET', `${path}/rows`)).json<{ rows: unknown[] }>();
      expect([rows.length, rows[99]]).toEqual([100, [99, 'w99']]);
      const histogram = await ask('GET', `${path}/histogram?column=word`);
      const { values } = histogram.json<{ values: unknown[] }>();
      expect([values.length, values[0]]).toEqual([20, { value: 'often', count: 3 }]);
    },
  ),
  row(
    at('limit at most 10,000; what is unknown or wrong is 400'),
    `${TABLE}/rows`,
    async ({ ask, make }) => {
      const path = `${await make.table()}/rows`;
      expectAnswer(await ask('GET', `${path}?limit=10000`), 200);
      for (const query of [
        'limit=10001',
        'limit=0',
        'offset=-1',
        'columns=none',
        'sort=none',
        'filter=n',
        'filter=n:like:1',
        'filter=n:eq:x',
        'other=1',
      ])
        expectError(await ask('GET', `${path}?${query}`), 400, { code: 'invalid_input' });
    },
  ),
  row(
    at('sort=name,-other; filter=column:op:value, repeatable, eq ne lt le gt ge null'),
    `${TABLE}/rows`,
    async ({ ask, make }) => {
      const path = `${await make.table()}/rows?columns=n`;
      const rows = async (query: string) => {
        const answer = await ask('GET', `${path}&${query}`);
        expectAnswer(answer, 200);
        return answer.json<{ rows: number[][] }>().rows.flat();
      };
      expect(await rows('sort=word,-n&limit=3')).toEqual([48, 46, 44]);
      expect(await rows('filter=n:ge:10&filter=n:lt:12')).toEqual([10, 11]);
      expect(await rows('filter=n:gt:47&filter=word:ne:odd')).toEqual([48]);
      expect(await rows('filter=n:le:1&filter=word:eq:odd')).toEqual([1]);
      expect(await rows('filter=nothing:null:true&limit=2')).toEqual([0, 1]);
      expect(await rows('filter=nothing:null:false')).toEqual([]);
    },
  ),
  row(
    at('the first request of a view waits for its job'),
    `${TABLE}/rows`,
    async ({ ask, make, world }) => {
      const aid = world.name('view');
      await make.parse(aid, 'a\n3\n1\n2\n', 'csv');
      const path = `/models/${(await make.projectWithModel()).mid}/tables/${aid}/rows`;
      const answer = await ask('GET', `${path}?sort=-a&filter=a:gt:1`);
      expectAnswer(answer, 200, { type: 'application/json' });
      expect(answer.json()).toMatchObject({ offset: 0, rows: [[3], [2]] });
    },
  ),
  row(
    at('Prefer for the first request of a view: respond-async and wait=0 are 202, wait=N waits'),
    `${TABLE}/rows`,
    async ({ ask, look, make, world, ended }) => {
      const aid = world.name('view');
      await make.parse(aid, 'a\n3\n1\n2\n', 'csv');
      const path = `/models/${(await make.projectWithModel()).mid}/tables/${aid}/rows`;
      for (const [Prefer, query, rows] of [
        ['respond-async', 'sort=a', [[1], [2], [3]]],
        ['wait=0', 'sort=-a', [[3], [2], [1]]],
      ] as const) {
        const later = await ask('GET', `${path}?${query}`, { headers: { Prefer } });
        expectAnswer(later, 202);
        // An answer that is not the view has nothing of it: who names its tag is told that nothing has changed.
        for (const none of ['etag', 'last-modified', 'content-disposition'])
          expect(later.headers).not.toHaveProperty(none);
        expect(later.headers['preference-applied']).toBe(Prefer);
        const { location = '' } = later.headers;
        expect(location).toMatch(/^\/api\/jobs\/\w+$/);
        const job = await ended(location.replace('/api/jobs/', ''));
        expect(job).toMatchObject({ kind: 'view', state: 'succeeded' });
        expect((await look('GET', `${path}?${query}`)).json()).toMatchObject({ rows });
      }
      const headers = { Prefer: 'wait=60' };
      const waited = await ask('GET', `${path}?filter=a:le:2`, { headers });
      expectAnswer(waited, 200);
      expect(waited.headers['preference-applied']).toBe('wait=60');
      expect(waited.json()).toMatchObject({ rows: [[1], [2]] });
    },
  ),
  row(
    at('histogram?column=&bins= {column, nulls, others, bins: [{from, to, count}]}'),
    `${TABLE}/histogram`,
    async ({ ask, make }) => {
      const path = `${await make.table()}/histogram`;
      type Counts = { bins: { from: number; to: number; count: number }[] };
      const read = async (query: string) => {
        const answer = await ask('GET', `${path}?${query}`);
        expect(answer.json()).toMatchObject({ column: 'n', nulls: 0, others: 0 });
        return answer.json<Counts>().bins;
      };
      expect(await read('column=n')).toHaveLength(20);
      const bins = await read('column=n&bins=5');
      expect(bins).toHaveLength(5);
      expect(bins.reduce((sum, { count }) => sum + count, 0)).toBe(50);
      expect([bins[0]?.from, bins.at(-1)?.to]).toEqual([0, 49]);
      for (const [i, bin] of bins.entries()) {
        expect(bin.count).toBe(10);
        if (i > 0) expect(bin.from).toBe(bins[i - 1]?.to);
      }
      expect(await read('column=n&bins=1000')).toHaveLength(1_000);
      for (const query of ['', 'column=none', 'column=n&bins=0', 'column=n&bins=1001'])
        expectError(await ask('GET', `${path}?${query}`), 400, { code: 'invalid_input' });
    },
  ),
  row(
    at('of a text {column, nulls, values: [{value, count}]}'),
    `${TABLE}/histogram`,
    async ({ ask, make }) => {
      const { values, ...rest } = (
        await ask('GET', `${await make.table()}/histogram?column=word`)
      ).json<{ values: { value: string }[] }>();
      expect(rest).toEqual({ column: 'word', nulls: 0 });
      const sorted = values.sort((a, b) => (a.value < b.value ? -1 : 1));
      expect(sorted).toEqual([
        { value: 'even', count: 25 },
        { value: 'odd', count: 25 },
      ]);
    },
  ),
  row(
    'tables: rows as text/csv and Arrow by Accept, then up to 1,000,000',
    `${TABLE}/rows`,
    async ({ ask, make }) => {
      const path = `${await make.table()}/rows`;
      const as = (Accept: string, query = '') => ask('GET', path + query, { headers: { Accept } });
      const csv = await as('text/csv', '?limit=1000000&columns=n,word');
      expectAnswer(csv, 200, { type: 'text/csv' });
      expect(csv.text.split('\r\n').slice(0, 3)).toEqual(['n,word', '0,even', '1,odd']);
      const arrow = await as('application/vnd.apache.arrow.stream');
      expectAnswer(arrow, 200, { type: 'application/vnd.apache.arrow.stream' });
      expect(tableFromIPC(arrow.bytes).numRows).toBe(50);
      for (const accept of ['text/csv', 'application/vnd.apache.arrow.stream'])
        expectError(await as(accept, '?limit=1000001'), 400, { code: 'invalid_input' });
    },
  ),
  row(
    'tables: series {x, y, buckets: {from, to, min, max, count}}',
    `${TABLE}/series`,
    async ({ ask, make }) => {
      const path = `${await make.table()}/series`;
      const answer = await ask('GET', `${path}?x=n&y=n&points=2&from=10&to=30`);
      expectAnswer(answer, 200, {
        json: {
          x: 'n',
          y: 'n',
          buckets: { from: [10, 20], to: [20, 30], min: [10, 20], max: [19, 29], count: [10, 10] },
        },
      });
      const whole = await ask('GET', `${path}?x=n&y=n`);
      expect(whole.json<{ buckets: { count: number[] } }>().buckets.count).toHaveLength(2_000);
      const empty = await ask('GET', `${path}?x=n&y=n&points=1&from=60&to=70`);
      expect(empty.json()).toMatchObject({ buckets: { min: [null], max: [null], count: [0] } });
      for (const query of ['', 'x=n', 'x=n&y=word', 'x=n&y=n&points=0'])
        expectError(await ask('GET', `${path}?${query}`), 400, { code: 'invalid_input' });
    },
  ),
  row(
    'tables: groupby?by=&aggregate= {columns, rows}; count, sum, mean, min, max',
    `${TABLE}/groupby`,
    async ({ ask, make }) => {
      const path = `${await make.table()}/groupby`;
      const ops = ['count', 'sum:n', 'mean:n', 'min:n', 'max:n'];
      const answer = await ask('GET', `${path}?by=word&aggregate=${ops.join('&aggregate=')}`);
      expectAnswer(answer, 200, {
        json: {
          columns: ['word', ...ops],
          rows: [
            ['even', 25, 600, 24, 0, 48],
            ['odd', 25, 625, 25, 1, 49],
          ],
        },
      });
      const both = await ask('GET', `${path}?by=word,nothing`);
      expect(both.json()).toMatchObject({ columns: ['word', 'nothing', 'count'] });
      for (const query of ['', 'by=none', 'by=word&aggregate=sum'])
        expectError(await ask('GET', `${path}?${query}`), 400, { code: 'invalid_input' });
    },
  ),
  row(at('data: the Parquet, with ranges'), `${TABLE}/data`, async ({ ask, make }) => {
    const path = `${await make.table()}/data`;
    const whole = await ask('GET', path);
    expectAnswer(whole, 200, { type: 'application/vnd.apache.parquet' });
    expect(whole.text.slice(0, 4)).toBe('PAR1');
    const { length } = whole.bytes;
    const part = await ask('GET', path, { headers: { Range: 'bytes=-4' } });
    expectAnswer(part, 206, { type: 'application/vnd.apache.parquet' });
    expect(part.text).toBe('PAR1');
    expect(part.headers['content-range']).toBe(`bytes ${length - 4}-${length - 1}/${length}`);
    const past = await ask('GET', path, { headers: { Range: `bytes=${length}-` } });
    expectError(past, 416, { code: 'range_not_satisfiable' });
    expect(past.headers['content-range']).toBe(`bytes */${length}`);
    // What belongs to the bytes is not on an answer without them.
    for (const none of ['etag', 'content-disposition'])
      expect(past.headers).not.toHaveProperty(none);
  }),
  row(
    at('file artifacts: GET /models/(mid)/files/(aid)'),
    'GET /models/{mid}/files/{aid}',
    async ({ ask, make }) => {
      const path = await make.file();
      const whole = await ask('GET', path);
      expectAnswer(whole, 200, { type: 'application/octet-stream' });
      expect(whole.text).toBe('0123456789');
      const part = await ask('GET', path, { headers: { Range: 'bytes=3-4' } });
      expectAnswer(part, 206, { type: 'application/octet-stream' });
      expect([part.text, part.headers['content-range']]).toEqual(['34', 'bytes 3-4/10']);
      const { mid } = await make.projectWithModel();
      expectError(await ask('GET', `/models/${mid}/files/none`), 404, { code: 'not_found' });
    },
  ),
  row(
    at('DELETE of a file or table 204'),
    'DELETE /models/{mid}/files/{aid}, DELETE /models/{mid}/tables/{aid}',
    async ({ ask, make, world }) => {
      const { mid } = await make.projectWithModel();
      const [file, table] = [world.name('file'), world.name('table')];
      await make.parse(file, 'bytes', 'blob');
      await make.parse(table, 'n\n1\n', 'csv');
      const paths = [`/models/${mid}/files/${file}`, `/models/${mid}/tables/${table}`];
      for (const path of paths) {
        expectAnswer(await ask('DELETE', path), 204);
        expectError(await ask('DELETE', path), 404, { code: 'not_found' });
      }
    },
  ),
];
