import { beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { makeTable } from '../harness/clients/tables.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { waitForEnd } from '../harness/hosts/remote.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';

interface Series {
  x: string;
  y: string;
  buckets: {
    from: (number | string)[];
    to: (number | string)[];
    min: (number | string | null)[];
    max: (number | string | null)[];
    count: number[];
  };
}

interface Groups {
  columns: string[];
  rows: unknown[][];
}

const ROWS = 20_000;
/** Nanoseconds since 1970: past 2^53. */
const EPOCH = 1_700_000_000_000_000_000n;

/** Rows in no order, by a generator that repeats itself. */
const rows = Array.from({ length: ROWS }, (_, i) => {
  const at = (i * 7919) % ROWS;
  return {
    at,
    x: at / 8,
    ns: EPOCH + BigInt(at) * 1_000_003n,
    time: new Date(Date.UTC(2024, 0, 1) + at * 1_001).toISOString(),
    y: i % 50 === 0 ? null : Math.sin(at / 300) * 1e3 + (i % 17),
    n: (i * 31) % 1_000,
    word: ['a', 'b', 'c', ''][i % 4],
  };
});
type Row = (typeof rows)[number];

describeStack(undefined, 'series and groups of a table', form => {
  const { client } = useStack(form);
  let path: string;

  beforeAll(async () => {
    const { mid } = await makeModel(client);
    const lines = rows.map(row => Object.values(row).join(','));
    const csv = `at,x,ns,time,y,n,word\n${lines.join('\n')}\n`;
    path = await makeTable(client, { mid, aid: 'plotted', csv });
  });

  const seriesOf = (query: string) => client.get<Series>(`${path}/series?${query}`);
  const groupsOf = (query: string) => client.get<Groups>(`${path}/groupby?${query}`);

  /** Each bucket is what its own edges say, counted row by row, and the buckets follow each other. */
  function expectBuckets<X extends number | bigint>(
    { buckets: { from, to, min, max, count } }: Series,
    {
      x,
      y,
      parse,
    }: { x: (row: Row) => X; y: (row: Row) => number | null; parse: (edge: never) => X },
  ): void {
    const edges = [...from, to.at(-1)].map(edge => parse(edge as never));
    expect(from.slice(1)).toEqual(to.slice(0, -1));
    const sorted = rows
      .map(row => [x(row), y(row)] as const)
      .sort((a, b) => (a[0] < b[0] ? -1 : 1));
    const got: unknown[] = [];
    const wanted: unknown[] = [];
    let row = sorted.findIndex(([at]) => at >= (edges[0] as X));
    for (let i = 0; i < count.length; i++) {
      const values: number[] = [];
      for (; row >= 0 && row < ROWS && (sorted[row]?.[0] as X) < (edges[i + 1] as X); row++) {
        const value = sorted[row]?.[1];
        if (value !== null && value !== undefined) values.push(value);
      }
      got.push([min[i], max[i], count[i]]);
      wanted.push(
        values.length === 0
          ? [null, null, 0]
          : [Math.min(...values), Math.max(...values), values.length],
      );
    }
    expect(got).toEqual(wanted);
  }

  test('a series has the least and greatest value of each bucket, at any zoom', async () => {
    const byNumber = { x: (row: Row) => row.x, y: (row: Row) => row.y, parse: Number };
    const whole = await seriesOf('x=x&y=y');
    expect([whole.x, whole.y, whole.buckets.count.length]).toEqual(['x', 'y', 2_000]);
    expect(whole.buckets.from[0]).toBe(0);
    expect(whole.buckets.count.reduce((sum, count) => sum + count)).toBe(ROWS - ROWS / 50);
    expectBuckets(whole, byNumber);
    for (const query of [
      'points=7',
      'from=100.3&to=1234.5&points=333',
      'from=-1e6&to=1e6&points=99',
    ])
      expectBuckets(await seriesOf(`x=x&y=y&${query}`), byNumber);

    const even = await seriesOf('x=at&y=n&points=8&from=0&to=20000');
    expect(even.buckets.from).toEqual([0, 2_500, 5_000, 7_500, 10_000, 12_500, 15_000, 17_500]);
    const byInteger = { x: (row: Row) => row.at, y: (row: Row) => row.n, parse: Number };
    expectBuckets(even, byInteger);
    expectBuckets(await seriesOf('x=at&y=n&points=3000&from=10.5'), byInteger);
    const beyond = await seriesOf('x=x&y=y&from=1e5&to=2e5&points=2');
    expect(beyond.buckets).toEqual({
      from: [100_000, 150_000],
      to: [150_000, 200_000],
      min: [null, null],
      max: [null, null],
      count: [0, 0],
    });
  });

  test('times, and integers past 2^53, are exact in a series', async () => {
    const nanoseconds = await seriesOf('x=ns&y=y&points=501');
    expect(nanoseconds.buckets.from[0]).toBe(String(EPOCH));
    expectBuckets(nanoseconds, { x: row => row.ns, y: row => row.y, parse: BigInt });
    const micros = (text: string) =>
      BigInt(Date.parse(`${text.slice(0, 19)}Z`)) * 1_000n +
      BigInt((/\.(\d+)/.exec(text)?.[1] ?? '').padEnd(6, '0'));
    const times = await seriesOf('x=time&y=n&points=77&from=2024-01-01T01:00:00Z');
    expect(times.buckets.from[0]).toBe('2024-01-01T01:00:00Z');
    expectBuckets(times, { x: row => micros(row.time), y: row => row.n, parse: micros });
    const upright = await seriesOf('x=n&y=ns&points=1');
    expect([upright.buckets.min, upright.buckets.max]).toEqual([
      [String(EPOCH)],
      [String(EPOCH + BigInt(ROWS - 1) * 1_000_003n)],
    ]);
  });

  test('the greatest value is in the last bucket, whose edges can be asked for', async () => {
    const { mid } = await makeModel(client);
    for (const [aid, values, edge] of [
      ['safe', ['1', '9007199254740992'], 9_007_199_254_740_994],
      ['least', ['-9007199254740992', '9007199254740992'], 9_007_199_254_740_994],
      ['id', ['9223372036854775800', '9223372036854775807'], '9223372036854775808'],
      ['day', ['9999-12-30', '9999-12-31'], '+010000-01-01'],
      ['clock', ['01:00:00', '23:59:59.999999'], '24:00:00'],
      ['utc', ['9999-12-30T00:00:00', '9999-12-31T23:59:59.999999'], '+010000-01-01T00:00:00'],
    ] as const) {
      const csv = `x,y\n${values.map(value => `${value},1`).join('\n')}\n`;
      const table = await makeTable(client, { mid, aid, csv });
      const read = async (query: string) => {
        const series = await client.get<Series>(`${table}/series?x=x&y=y&points=2${query}`);
        return series.buckets;
      };
      const whole = await read('');
      expect([aid, whole.to[1], whole.count]).toEqual([aid, edge, [1, 1]]);
      const [from, to] = [whole.from[1], whole.to[1]].map(text => encodeURIComponent(String(text)));
      const { count } = await read(`&from=${from}&to=${to}`);
      expect([aid, count.reduce((sum, n) => sum + n)]).toEqual([aid, 1]);
    }
    const csv = '9007199254740993,1\n18014398509481985,1\n';
    const table = await makeTable(client, { mid, aid: 'wide', csv, with: { header: false } });
    const wide = await client.fetch(`${table}/series?x=column0&y=column1`);
    expect((await expectProblem(wide, 400, 'invalid_input')).detail).toContain('2^53');
  });

  test('a time far away keeps nobody from plotting the others', async () => {
    const { mid } = await makeModel(client);
    const day = (n: number) => `2024-01-0${n}T00:00:00.000001`;
    const csv = `t,n,y\n0001-01-02T00:00:00,-9223372036854775807,5\n${day(1)},1,6\n${day(2)},2,7\n9999-12-31T00:00:00,9223372036854775807,8\n`;
    const table = await makeTable(client, { mid, aid: 'far', csv });
    const read = (query: string) => client.fetch(`${table}/series?y=y&points=1&${query}`);
    const refused = async (query: string) =>
      (await expectProblem(await read(query), 400, 'invalid_input')).detail;
    expect(await refused('x=t')).toContain('285 years: give `from` and `to`');
    expect(await refused(`x=t&from=${day(1)}`)).toContain('285 years');
    expect(await refused(`x=t&from=0001-01-01&to=${day(1)}`)).toContain('285 years');
    for (const [query, from, y] of [
      [`x=t&from=${day(1)}&to=${day(2)}`, day(1), 6],
      [`x=t&from=${day(2)}&to=${day(3)}`, day(2), 7],
      ['x=n&from=1&to=2', '1', 6],
      ['x=n&from=2&to=3', '2', 7],
    ] as const) {
      const answer = await read(query);
      const { buckets } = (await answer.json()) as Series;
      expect([query, buckets.from, buckets.min, buckets.count]).toEqual([query, [from], [y], [1]]);
    }
  });

  test('where each value can have a bucket it has one', async () => {
    const { mid } = await makeModel(client);
    const ids = Array.from({ length: 2_000 }, (_, n) => 1_000_000 + n);
    const csv = `id,v\n${ids.map(id => `${id},1`).join('\n')}\n`;
    const table = await makeTable(client, { mid, aid: 'ids', csv });
    for (const points of [2_000, 1_000, 100]) {
      const query = `x=id&y=v&points=${points}`;
      const { buckets } = await client.get<Series>(`${table}/series?${query}`);
      const each = ids.length / points;
      expect(buckets.count).toEqual(new Array(points).fill(each));
      expect(buckets.from).toEqual(ids.filter((_, n) => n % each === 0));
    }
  });

  test('what a series cannot show is refused, and names the field', async () => {
    for (const [query, field] of [
      ['y=y', 'x'],
      ['x=nope&y=y', 'x'],
      ['x=x&y=word', 'y'],
      ['x=x&y=y&points=10001', 'points'],
      ['x=x&y=y&from=abc', 'from'],
      ['x=time&y=y&from=5', 'from'],
      ['x=x&y=y&from=5&to=5', 'to'],
      ['x=x&y=y&from=1e9', 'from'],
      ['x=ns&y=y&from=0', 'from'],
    ] as const) {
      const answer = await client.fetch(`${path}/series?${query}`);
      const { fields } = await expectProblem(answer, 400, 'invalid_input');
      expect([query, fields?.[0]?.field]).toEqual([query, field]);
    }
    const { mid } = await makeModel(client);
    const csv = 'none,one,wide\n,5,9223372036854775807\n,5,-9223372036854775807\n';
    const other = await makeTable(client, {
      mid,
      aid: 'other',
      csv,
      with: { types: { none: 'number' } },
    });
    const wide = await client.fetch(`${other}/series?x=one&y=wide`);
    expect((await expectProblem(wide, 400, 'invalid_input')).detail).toContain('2^53');
    const none = await client.get<Series>(`${other}/series?x=one&y=none`);
    expect(none.buckets).toEqual({ from: [], to: [], min: [], max: [], count: [] });
    const one = await client.get<Series>(`${other}/series?x=one&y=one&points=1`);
    expect(one.buckets).toEqual({ from: [5], to: [6], min: [5], max: [5], count: [2] });
  });

  test('groups are counted and aggregated, and made once', async () => {
    const query =
      'by=word&aggregate=count&aggregate=count:y&aggregate=sum:n&aggregate=mean:n&aggregate=min:y&aggregate=max:time&aggregate=sum:ns&aggregate=min:ns';
    const { columns, rows: groups } = await groupsOf(query);
    expect(columns).toEqual([
      'word',
      'count',
      'count:y',
      'sum:n',
      'mean:n',
      'min:y',
      'max:time',
      'sum:ns',
      'min:ns',
    ]);
    const wanted = ['a', 'b', 'c', ''].map(word => {
      const those = rows.filter(row => row.word === word);
      const sum = those.reduce((total, { n }) => total + n, 0);
      const ys = those.flatMap(({ y }) => (y === null ? [] : [y]));
      const latest =
        those
          .map(({ time }) => time)
          .sort()
          .at(-1) ?? '';
      const ns = those.map(row => row.ns);
      return [
        word === '' ? null : word,
        those.length,
        ys.length,
        sum,
        sum / those.length,
        Math.min(...ys),
        latest.replace(/\.?0*Z$/, 'Z'),
        String(ns.reduce((total, one) => total + one)),
        String(ns.reduce((least, one) => (one < least ? one : least))),
      ];
    });
    expect(groups).toEqual(wanted);
    const jobs = async () => (await client.get<{ items: unknown[] }>('/api/jobs')).items.length;
    const before = await jobs();
    expect((await groupsOf(query)).rows).toEqual(groups);
    expect(await jobs()).toBe(before);

    const csv = 'of,x\na,1e308\na,1.5e308\nb,-1e308\nb,-1e308\nc,1\nc,2.5\nd,\n';
    const { mid } = await makeModel(client);
    const large = await makeTable(client, { mid, aid: 'large', csv });
    const means = await client.get<Groups>(`${large}/groupby?by=of&aggregate=mean:x`);
    expect(means.rows).toEqual([
      ['a', 1.25e308],
      ['b', -1e308],
      ['c', 1.75],
      ['d', null],
    ]);

    const some = await groupsOf('by=n,word&filter=n:lt:3');
    const pairs = new Map<string, number>();
    for (const { n, word } of rows)
      if (n < 3) pairs.set(`${n} ${word}`, (pairs.get(`${n} ${word}`) ?? 0) + 1);
    expect(some.columns).toEqual(['n', 'word', 'count']);
    expect(
      Object.fromEntries(some.rows.map(([n, word, count]) => [`${n} ${word ?? ''}`, count])),
    ).toEqual(Object.fromEntries(pairs));
    const later = await client.fetch(`${path}/groupby?by=n`, {
      headers: { Prefer: 'respond-async' },
    });
    expect(later.status).toBe(202);
    await waitForEnd(client, (later.headers.get('Location') ?? '').split('/').at(-1) ?? '');
    expect((await groupsOf('by=n')).rows).toHaveLength(1_000);
    expect((await groupsOf('by=word&filter=n:lt:0')).rows).toEqual([]);
  });

  test('groups that are too many or ask for what is not there are refused', async () => {
    const many = await client.fetch(`${path}/groupby?by=at`);
    expect((await expectProblem(many, 400, 'invalid_input')).detail).toContain('10000 groups');
    for (const [query, field] of [
      ['', 'by'],
      ['by=nope', 'by'],
      ['by=word&aggregate=median:n', 'aggregate'],
      ['by=word&aggregate=sum', 'aggregate'],
      ['by=word&aggregate=sum:word', 'aggregate'],
      ['by=word&aggregate=sum:nope', 'aggregate'],
      ['by=word&filter=n:like:1', 'filter'],
      ["by=word');drop table jobs;--", 'by'],
    ] as const) {
      const answer = await client.fetch(`${path}/groupby?${query}`);
      const { fields } = await expectProblem(answer, 400, 'invalid_input');
      expect([query, fields?.[0]?.field]).toEqual([query, field]);
    }
  });
});
