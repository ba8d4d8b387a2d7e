import { beforeAll, expect, test } from 'vitest';
import { formatNpyHeader } from '../../shared/arrays/npy-header.ts';
import { makeArray, makeTable, parse, type RowsPage, utf8 } from '../harness/clients/tables.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { makeWorkbook } from '../harness/files/make-workbook.ts';
import { makeZip } from '../harness/files/make-zip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';

interface Slice {
  shape: number[];
  values: unknown[];
}

describeStack(undefined, 'files of other formats over HTTP', form => {
  const { client } = useStack(form);
  let mid: string;

  beforeAll(async () => {
    ({ mid } = await makeModel(client));
  });

  const at = (kind: string, aid: string) =>
    `/api/models/${mid}/${kind}s/${encodeURIComponent(aid)}`;

  test('an archive becomes tables, arrays and files, named by their paths', async () => {
    const sheet = '<x:row><x:c><x:v>1.5</x:v></x:c></x:row>';
    const grid = Buffer.concat([formatNpyHeader('|b1', [1, 2]), Buffer.from([1, 0])]);
    const archive = makeZip([
      { name: 'days/one.csv', content: 'n\n1\n' },
      { name: 'days/Größe.npy', content: grid },
      { name: 'book.xlsx', content: makeWorkbook({ sheet }) },
      { name: 'READ ME', content: 'text' },
    ]);
    const job = await parse(client, { mid, parser: 'zip', files: { all: [archive] } });
    expect(job).toMatchObject({
      state: 'succeeded',
      result: {
        count: 4,
        artifacts: [
          { aid: 'all/days/one.csv', kind: 'table' },
          { aid: 'all/days/Größe.npy', kind: 'array' },
          { aid: 'all/book.xlsx/S', kind: 'table' },
          { aid: 'all/READ ME', kind: 'file' },
        ],
      },
    });
    const rows = (aid: string) => client.get<RowsPage>(`${at('table', aid)}/rows`);
    expect(await rows('all/days/one.csv')).toMatchObject({ columns: ['n'], rows: [[1]] });
    expect(await rows('all/book.xlsx/S')).toMatchObject({ rows: [[1.5]] });
    expect(await client.get(at('array', 'all/days/Größe.npy'))).toEqual({
      shape: [1, 2],
      values: [true, false],
    });
    expect(await (await client.fetch(at('file', 'all/READ ME'))).text()).toBe('text');
    const { artifacts } = await client.get<{ artifacts: { aid: string; type: string }[] }>(
      `/api/models/${mid}`,
    );
    expect(artifacts).toContainEqual(
      expect.objectContaining({ aid: 'all/days/Größe.npy', type: 'array' }),
    );
  });

  test('a table that was fetched as Parquet is the same table again', async () => {
    const csv = 'n,t,x,d\n9007199254740993,é,0.1,2020-01-02\n,,-0.0,\n';
    const path = await makeTable(client, { mid, aid: 'first', csv });
    const file = new Uint8Array(await (await client.fetch(`${path}/data`)).arrayBuffer());
    const job = await parse(client, { mid, parser: 'parquet', files: { again: [file] } });
    expect(job.state).toBe('succeeded');
    const [before, after] = await Promise.all(
      [path, at('table', 'again')].map(async one => [
        await (await client.fetch(`${one}/rows`)).text(),
        (await client.get<{ columns: unknown }>(`${one}/metadata`)).columns,
      ]),
    );
    expect(after).toEqual(before);
  });

  test('a table whose column is called like a number of rows of DuckDB is sorted', async () => {
    const csv = 'file_row_number,x\n3,1\n2,0\n1,1\n';
    const path = await makeTable(client, { mid, aid: 'numbered', csv });
    expect((await client.get<RowsPage>(`${path}/rows?sort=x`)).rows).toEqual([
      [2, 0],
      [3, 1],
      [1, 1],
    ]);
  });

  test('a slice is what lies there in the array, for any slice', async () => {
    const shape = [40, 50, 60];
    const values = Array.from({ length: 120_000 }, (_, i) => BigInt(i) * 60_071_992_547_409n);
    const file = Buffer.concat([
      formatNpyHeader('<i8', shape),
      Buffer.from(BigInt64Array.from(values).buffer),
    ]);
    const path = await makeArray(client, { mid, aid: 'cube', file });
    expect(await client.get(`${path}/metadata`)).toEqual({
      shape,
      type: 'integer',
      exact: true,
      min: '0',
      max: String(values.at(-1)),
    });
    const range = (length: number, part: string): number[] => {
      const [from = '', to] = part.split(':');
      if (to === undefined) return [Number(from)];
      const all = Array.from({ length }, (_, i) => i);
      return all.slice(Number(from || 0), to === '' ? length : Number(to));
    };
    for (const slice of [
      '3',
      ':,7,:',
      '0:40,49,59',
      '10:12,1:50,5:6',
      '39:,48:99,0:3',
      '5,5,5',
      ':',
      '2:2',
    ]) {
      const parts = [0, 1, 2].map(d => slice.split(',')[d] ?? ':');
      const [a = [], b = [], c = []] = parts.map((part, d) => range(shape[d] as number, part));
      const expected = a.flatMap(i =>
        b.flatMap(j => c.map(k => String(values[(i * 50 + j) * 60 + k]))),
      );
      const found = await client.get<Slice>(`${path}?slice=${slice}`);
      expect([slice, found.shape]).toEqual([
        slice,
        [a, b, c].filter((_, d) => parts[d]?.includes(':')).map(({ length }) => length),
      ]);
      expect(found.values).toEqual(expected);
    }
    const large = Buffer.concat([formatNpyHeader('|i1', [2, 1_000_000]), Buffer.alloc(2_000_000)]);
    const other = await makeArray(client, { mid, aid: 'large', file: large });
    const refused = await client.fetch(other);
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringContaining('2000000 values, and at most 1000000'),
    ]);
    expect((await client.get<Slice>(`${other}?slice=1`)).values.length).toBe(1_000_000);
    const floats = Buffer.from(Float64Array.from([Number.NaN, -Infinity, -0, 0.1]).buffer);
    const file2 = Buffer.concat([formatNpyHeader('<f8', [2, 2]), floats]);
    const text = await (
      await client.fetch(await makeArray(client, { mid, aid: 'f', file: file2 }))
    ).text();
    expect(text).toBe('{"shape":[2,2],"values":["NaN","-Infinity",-0,0.1]}');
  });

  test('the result of a parse names the first of many artifacts, and counts all', async () => {
    const members = Array.from({ length: 600 }, (_, i) => ({ name: `${i}.txt`, content: 'x' }));
    const [one, two] = [makeZip(members), makeZip(members)];
    const { state, result } = await parse(client, {
      mid,
      parser: 'zip',
      files: { one: [one], two: [two] },
    });
    const { artifacts, count } = result as { artifacts: { aid: string }[]; count: number };
    expect([state, count, artifacts.length]).toEqual(['succeeded', 1_200, 1_000]);
    expect(artifacts.at(-1)).toEqual({ aid: 'two/399.txt', kind: 'file', size: 1 });
    const last = await client.fetch(at('file', 'two/599.txt'));
    expect(await last.text()).toBe('x');
  });

  test('what goes wrong in a file of several is told, and nothing of it is kept', async () => {
    const zip = (name: string, content: string) =>
      makeZip([
        { name: 'ok.txt', content: 'x' },
        { name, content },
      ]);
    const failed = async (files: Record<string, Uint8Array[]>) => {
      const { state, error } = await parse(client, { mid, parser: 'zip', files });
      expect(state).toBe('failed');
      return JSON.stringify(error);
    };
    expect(await failed({ z: [zip('b.csv', 'a,b\n1\n')] })).toContain(
      'file 0 (z), line 2: \\"b.csv\\": expected 2 values, found 1',
    );
    expect(await failed({ z: [utf8('x,y\n1,2\n')] })).toContain('not a ZIP archive');
    expect(await failed({ z: [zip('n'.repeat(254), '')] })).toContain('longer than 255 characters');
    expect(await failed({ z: [zip('n\n', '')] })).toContain('not one line');
    expect(await failed({ z: [zip('y/b', '')], 'z/y': [zip('b', '')] })).toContain(
      'two of its artifacts would be named z/',
    );
    const sheet = '<x:row><x:c><x:v>1.5</x:v></x:c></x:row>';
    const twice = makeZip([
      { name: 'b.xlsx', content: makeWorkbook({ sheet }) },
      { name: 'b.xlsx/S', content: 'x' },
    ]);
    expect(await failed({ z: [twice] })).toContain(
      'two of its artifacts would be named z/b.xlsx/S',
    );
    const { artifacts } = await client.get<{ artifacts: { aid: string }[] }>(`/api/models/${mid}`);
    expect(artifacts.filter(({ aid }) => aid.startsWith('z'))).toEqual([]);
  });
});
