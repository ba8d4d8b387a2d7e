import { parquetReadObjects } from 'hyparquet';
import { beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { makeTable } from '../harness/clients/tables.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';

interface Counts {
  nulls: number;
  bins: { from: unknown; to: unknown; count: number }[];
  values?: { value: unknown; count: number }[];
}

describeStack(undefined, 'what a table has how often', form => {
  const { client } = useStack(form);
  let mid: string;

  beforeAll(async () => {
    ({ mid } = await makeModel(client));
  });

  test('histograms count every value once', async () => {
    const values = Array.from({ length: 30_000 }, (_, i) => ((i * 7919) % 1_000) / 10);
    const csv = values.map(
      (x, i) =>
        `${i % 100 === 0 ? '' : x},${i % 2 ? 'odd' : 'even'},2020-01-0${1 + (i % 9)},${i % 2 === 0}`,
    );
    const path = await makeTable(client, {
      mid,
      aid: 'counted',
      csv: `x,s,day,flag\n${csv.join('\n')}\n`,
    });
    const { nulls, bins } = await client.get<Counts>(`${path}/histogram?column=x&bins=7`);
    const kept = values.filter((_, i) => i % 100 !== 0);
    expect([nulls, bins.length, bins[0]?.from, bins.at(-1)?.to]).toEqual([
      300,
      7,
      Math.min(...kept),
      Math.max(...kept),
    ]);
    expect(bins.reduce((sum, { count }) => sum + count, 0)).toBe(kept.length);
    expect(bins[1]?.from).toBe(bins[0]?.to);
    expect(await client.get(`${path}/histogram?column=s`)).toEqual({
      column: 's',
      nulls: 0,
      values: [
        { value: 'even', count: 15_000 },
        { value: 'odd', count: 15_000 },
      ],
    });
    const days = await client.get<Counts>(`${path}/histogram?column=day&bins=8`);
    expect([days.bins[0]?.from, days.bins[7]?.to, days.bins[0]?.count]).toEqual([
      '2020-01-01',
      '2020-01-09',
      3_334,
    ]);
    expect(await client.get(`${path}/histogram?column=flag`)).toMatchObject({
      values: [{ count: 15_000 }, { count: 15_000 }],
    });
    await expectProblem(
      await client.fetch(`${path}/histogram?column=x&bins=1001`),
      400,
      'invalid_input',
    );
    await expectProblem(await client.fetch(`${path}/histogram?column=y`), 400, 'invalid_input');
    const parquet = await client.fetch(`${path}/data`, { headers: { Range: 'bytes=0-3' } });
    expect([parquet.status, await parquet.text()]).toEqual([206, 'PAR1']);
  });

  test('texts are counted whole, whatever the columns are called', async () => {
    const alike = 'x'.repeat(200);
    const csv = `sensor,value,h,url\na,,1,${alike}a\na,1,2,${alike}a\nb,,3,${alike}b\n,5,4,\n`;
    const path = await makeTable(client, { mid, aid: 'alike', csv });
    const counts = (column: string, filter = '') =>
      client.get<Counts>(`${path}/histogram?column=${column}${filter}`);
    for (const filter of ['', '&filter=h:gt:0']) {
      expect(await counts('sensor', filter)).toMatchObject({
        nulls: 1,
        values: [
          { value: 'a', count: 2 },
          { value: 'b', count: 1 },
        ],
      });
      expect((await counts('sensor', filter)).values?.[0]).not.toHaveProperty('cut');
      expect(await counts('url', filter)).toMatchObject({
        nulls: 1,
        values: [
          { value: alike, count: 2, cut: true },
          { value: alike, count: 1, cut: true },
        ],
      });
    }
  });

  test('too many different values are refused, and other reads go on', async () => {
    const texts = Array.from({ length: 100_001 }, (_, n) => `t${n}`);
    const csv = `t,n\n${texts.map((t, n) => `${t},${n}`).join('\n')}\n`;
    const path = await makeTable(client, { mid, aid: 'many', csv });
    const [counted, rows] = await Promise.all([
      client.fetch(`${path}/histogram?column=t&filter=t:null:false`),
      client.fetch(`${path}/rows?offset=100000`),
    ]);
    const { detail } = await expectProblem(counted, 413, 'payload_too_large');
    expect([rows.status, detail]).toEqual([
      200,
      expect.stringContaining('t has more than 100000 different values'),
    ]);
    const fewer = await client.get<Counts>(`${path}/histogram?column=t&filter=n:lt:100000`);
    expect(fewer.values?.[0]).toEqual({ value: 't0', count: 1 });
  });

  test('what a filter lets pass is counted, plotted and downloaded', async () => {
    const csv = Array.from({ length: 3_000 }, (_, n) => {
      const sky = n % 3 === 0 ? '' : `sky ${n % 5}`;
      return `${n},${n % 4 === 0},${sky},${n % 7 === 0 ? '' : n / 10}`;
    });
    const lines = ['n,even,sky,part', ...csv, ''].join('\n');
    const path = await makeTable(client, { mid, aid: 'passing', csv: lines });
    const filter = 'filter=n:ge:1000&filter=n:lt:2000';
    const kept = csv.slice(1_000, 2_000).map(line => line.split(','));
    const count = (column: number, value: string) =>
      kept.filter(cells => cells[column] === value).length;
    const counts = (column: string) => client.get<Counts>(`${path}/histogram?${column}&${filter}`);
    const { nulls, bins } = await counts('column=part&bins=3');
    expect(nulls).toBe(count(3, ''));
    // Of the whole table, so that both are compared.
    expect([bins[0]?.from, bins[2]?.to]).toEqual([0.1, 299.9]);
    expect(bins.map(bin => bin.count)).toEqual([1, 999 - count(3, ''), 0]);
    expect(await counts('column=even')).toMatchObject({
      nulls: 0,
      values: [
        { value: false, count: count(1, 'false') },
        { value: true, count: count(1, 'true') },
      ],
    });
    const sky = await counts('column=sky');
    expect(sky).toMatchObject({ column: 'sky', nulls: count(2, '') });
    expect(
      Object.fromEntries((sky.values ?? []).map(({ value, count }) => [value, count])),
    ).toEqual(Object.fromEntries([0, 1, 2, 3, 4].map(n => [`sky ${n}`, count(2, `sky ${n}`)])));
    const series = await client.get<{ buckets: Record<string, unknown[]> }>(
      `${path}/series?x=n&y=n&points=3&${filter}`,
    );
    expect(series.buckets).toMatchObject({
      min: [null, 1_000, null],
      max: [null, 1_999, null],
      count: [0, 1_000, 0],
    });
    const data = await client.fetch(`${path}/data?${filter}&sort=-n`);
    expect(data.status).toBe(200);
    const bytes = await data.arrayBuffer();
    const rows = await parquetReadObjects({ file: bytes, columns: ['n', 'sky'] });
    expect([rows.length, Number(rows[0]?.n), Number(rows.at(-1)?.n)]).toEqual([
      1_000, 1_999, 1_000,
    ]);
    const tag = data.headers.get('ETag') ?? '';
    const range = await client.fetch(`${path}/data?${filter}&sort=-n`, {
      headers: { Range: 'bytes=0-3', 'If-Range': tag },
    });
    expect([range.status, await range.text()]).toEqual([206, 'PAR1']);
    await expectProblem(await client.fetch(`${path}/data?filter=x:eq:1`), 400, 'invalid_input');
  });
});
