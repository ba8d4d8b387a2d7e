import { parquetReadObjects } from 'hyparquet';
import { beforeAll, expect, test } from 'vitest';
import { pidOfWorker } from '../../shared/jobs/worker-id.ts';
import { describeStack } from '../harness/forms.ts';
import { expectProblem } from '../harness/problem.ts';
import { addUsers } from '../harness/projects.ts';
import { waitForEnd } from '../harness/remote.ts';
import {
  type Metadata,
  makeTable,
  parse,
  type RowsPage,
  startParse,
  utf8,
} from '../harness/tables.ts';
import { makeModel, readUpload, someBytes } from '../harness/uploads.ts';
import { useStack } from '../harness/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

interface Counts {
  nulls: number;
  bins: { from: unknown; to: unknown; count: number }[];
  values?: { value: unknown; count: number }[];
}

describeStack(undefined, 'tables and files over HTTP', form => {
  const { stack, client } = useStack(form);
  let mid: string;

  beforeAll(async () => {
    ({ mid } = await makeModel(client));
  });

  const rowsOf = (path: string, query = '') => client.get<RowsPage>(`${path}/rows${query}`);
  const textOf = async (path: string) => (await client.fetch(path)).text();

  test('files come back as they were sent, of one part and of several', async () => {
    const one = someBytes(100_000);
    const several = [someBytes(70_000), someBytes(1), someBytes(50_000)];
    const job = await parse(client, {
      mid,
      parser: 'blob',
      files: { 'a/one': [one], 'sév"eral': several },
    });
    expect(job.state).toBe('succeeded');
    const first = await client.fetch(`/api/models/${mid}/files/a%2Fone`);
    expect(Buffer.from(await first.arrayBuffer()).equals(one)).toBe(true);
    expect(first.headers.get('Content-Security-Policy')).toContain('sandbox');
    expect(first.headers.get('X-Content-Type-Options')).toBe('nosniff');
    expect(first.headers.get('Content-Type')).toBe('application/octet-stream');
    expect(first.headers.get('Content-Disposition')).toMatch(/^attachment; filename="a_one"/);
    const path = `/api/models/${mid}/files/${encodeURIComponent('sév"eral')}`;
    const whole = await client.fetch(path);
    expect(Buffer.from(await whole.arrayBuffer()).equals(Buffer.concat(several))).toBe(true);
    const range = await client.fetch(path, { headers: { Range: 'bytes=69999-70001' } });
    expect([range.status, Buffer.from(await range.arrayBuffer())]).toEqual([
      206,
      Buffer.concat(several).subarray(69_999, 70_002),
    ]);
    expect((await readUpload(client, job.uid)).state).toBe('done');
    expect((await readUpload(client, job.uid)).parts).toEqual([]);
    await expectProblem(
      await client.fetch(`/api/models/${mid}/tables/a%2Fone/rows`),
      404,
      'not_found',
    );
    const beyond = await client.fetch(path, { headers: { Range: 'bytes=200000-' } });
    expect(beyond.headers.get('Content-Disposition')).toBeNull();
    await expectProblem(beyond, 416, 'range_not_satisfiable');
  });

  test('every type of value, exactly', async () => {
    const csv = [
      'i,d,b,t,ts,tz,s,zip,day',
      '9223372036854775807,1.5,true,12:30:00.5,2020-01-01 10:00,2020-01-01T00:00:00Z,"x ""y""\nz",00123,2020-02-29',
      '-9007199254740993,-0.0,false,,2020-01-02T01:02:03.123456,2020-01-01T00:00:00+02:00,,00004,1969-12-31',
      ',2.5e-3,,23:59:59,,,é,99,',
    ].join('\r\n');
    const path = await makeTable(client, { mid, aid: 'types', csv: `\ufeff${csv}\r\n` });
    const { columns } = await client.get<Metadata>(`${path}/metadata`);
    expect(columns.map(({ name, type }) => `${name} ${type}`)).toEqual([
      'i integer',
      'd number',
      'b boolean',
      't time',
      'ts timestamp',
      'tz timestamp',
      's text',
      'zip text',
      'day date',
    ]);
    expect(columns.map(({ nulls }) => nulls)).toEqual([1, 0, 1, 1, 1, 1, 1, 0, 1]);
    expect(columns[1]).toMatchObject({ min: 0, max: 1.5 });
    expect(columns[8]).toMatchObject({ min: '1969-12-31', max: '2020-02-29' });
    const metadata = await textOf(`${path}/metadata`);
    expect(metadata).toContain(
      '"min":"-9007199254740993","max":"9223372036854775807","nulls":1,"exact":true',
    );
    expect(await textOf(`${path}/rows`)).toContain(
      '"rows":[["9223372036854775807",1.5,true,"12:30:00.5","2020-01-01T10:00:00","2020-01-01T00:00:00Z","x \\"y\\"\\nz","00123","2020-02-29"],' +
        '["-9007199254740993",-0,false,null,"2020-01-02T01:02:03.123456","2019-12-31T22:00:00Z",null,"00004","1969-12-31"],' +
        '[null,0.0025,null,"23:59:59",null,null,"é","99",null]]}',
    );
  });

  test('a value after any number of others comes back as it was written', async () => {
    const csv = `a,b,c,d\n${'1,1,10:00:00,true\n'.repeat(60_000)}1.5,007,10:00:00+05:00,yes\n`;
    const path = await makeTable(client, { mid, aid: 'late', csv });
    const { columns } = await client.get<Metadata>(`${path}/metadata`);
    expect(columns.map(({ type }) => type)).toEqual(['number', 'text', 'text', 'text']);
    expect(await textOf(`${path}/rows?offset=59999`)).toContain(
      '"rows":[[1,"1","10:00:00","true"],[1.5,"007","10:00:00+05:00","yes"]]',
    );
  });

  test('pages, columns, sorting and filters', async () => {
    const lines = Array.from(
      { length: 20_000 },
      (_, i) => `${i},${i % 7},n${i % 3},${i % 10 === 0 ? '' : i / 4}`,
    );
    const path = await makeTable(client, {
      mid,
      aid: 'pages',
      csv: `id,group,"a,b",x:y\n${lines.join('\n')}\n`,
    });
    const page = await rowsOf(path, '?offset=8190&limit=4&columns=id,group');
    expect(page).toEqual({
      offset: 8190,
      total: 20_000,
      columns: ['id', 'group'],
      rows: [8190, 8191, 8192, 8193].map(id => [id, id % 7]),
    });
    const comma = encodeURIComponent('a,b');
    expect((await rowsOf(path, `?limit=1&columns=x:y&columns=${comma}`)).columns).toEqual([
      'x:y',
      'a,b',
    ]);
    expect((await rowsOf(path, '?offset=19999')).rows).toHaveLength(1);
    expect((await rowsOf(path, '?offset=50000')).rows).toEqual([]);

    const sorted = await rowsOf(path, '?sort=group,-id&limit=3&columns=id,group');
    expect(sorted.rows).toEqual([19_999, 19_992, 19_985].map(id => [id, 0]));
    const stable = await rowsOf(path, '?sort=group&limit=3&offset=1&columns=id');
    expect(stable.rows).toEqual([[7], [14], [21]]);
    const nulls = await rowsOf(path, '?filter=x:y:null:true&limit=2');
    expect([nulls.total, nulls.rows[1]?.[0]]).toEqual([2_000, 10]);
    const some = await rowsOf(
      path,
      `?filter=id:ge:100&filter=id:lt:110&filter=${comma}:eq:n1&columns=id`,
    );
    expect(some.rows).toEqual([[100], [103], [106], [109]]);
    const last = await rowsOf(path, '?sort=-x:y&limit=1&offset=19999&columns=x:y');
    expect(last.rows).toEqual([[null]]);

    const wrong = [
      'columns=nope',
      'sort=nope',
      'filter=nope:eq:1',
      'filter=id:like:1',
      'filter=id:eq:x',
      'filter=id:eq:99999999999999999999',
      'filter=id',
      'filter=x:y:null:maybe',
      'limit=10001',
      'offset=-1',
      'more=1',
    ];
    for (const query of wrong) {
      const problem = await expectProblem(
        await client.fetch(`${path}/rows?${query}`),
        400,
        'invalid_input',
      );
      expect(problem.fields?.[0]?.field).toBe(query.split('=')[0]);
    }
  });

  test('ETags are decided before a view is made, and change with the table', async () => {
    const path = await makeTable(client, { mid, aid: 'tagged', csv: 'a\n2\n1\n' });
    const first = await client.fetch(`${path}/rows`);
    const tag = first.headers.get('ETag') ?? '';
    for (const what of ['rows?sort=a', 'metadata', 'histogram?column=a', 'data']) {
      const again = await client.fetch(`${path}/${what}`, { headers: { 'If-None-Match': tag } });
      expect([what, again.status]).toEqual([what, 304]);
    }
    const read = (more: string, headers: Record<string, string>) =>
      client.fetch(`${path}/rows?offset=1${more}`, { headers: { 'If-Match': tag, ...headers } });
    expect((await read('&sort=a', {})).status).toBe(200);
    await makeTable(client, { mid, aid: 'tagged', csv: 'a\n3\n1\n' });
    for (const sort of ['', '&sort=-a'])
      await expectProblem(await read(sort, {}), 412, 'precondition_failed');
    await expectProblem(await read('', { Accept: 'text/csv' }), 412, 'precondition_failed');
    const changed = await client.fetch(`${path}/rows?sort=a`, {
      headers: { 'If-None-Match': tag },
    });
    expect([changed.status, ((await changed.json()) as RowsPage).rows]).toEqual([200, [[1], [3]]]);
  });

  test('a view is made by a job, shared by all readers, and made anew after it was cancelled', async () => {
    const people = await addUsers(stack, ['reader']);
    const { pid, mid } = await makeModel(client);
    await client.fetch(`/api/projects/${pid}`, {
      method: 'PUT',
      body: JSON.stringify({
        acl: {
          administrators: [{ user: stack.username }],
          writers: [],
          readers: [{ user: 'reader' }],
        },
      }),
    });
    const path = await makeTable(client, { mid, aid: 'shared', csv: 'a\n2\n3\n1\n' });
    const later = await client.fetch(`${path}/rows?sort=-a`, {
      headers: { Prefer: 'respond-async' },
    });
    // The table's tag would have whoever sends it back told 304 for a view that they never got.
    expect([later.status, later.headers.get('ETag')]).toEqual([202, null]);
    const location = later.headers.get('Location') ?? '';
    await waitForEnd(client, location.split('/').at(-1) ?? '');
    const before = (await client.get<{ items: unknown[] }>('/api/jobs')).items.length;
    const theirs = await people.reader.get<RowsPage>(`${path}/rows?sort=-a`);
    expect(theirs.rows).toEqual([[3], [2], [1]]);
    expect(await people.reader.get('/api/jobs')).toEqual({ items: [], next: null });
    expect((await client.get<{ items: unknown[] }>('/api/jobs')).items).toHaveLength(before);

    const another = await client.fetch(`${path}/rows?sort=a`, {
      headers: { Prefer: 'respond-async' },
    });
    const { id } = (await another.json()) as { id: string };
    await client.fetch(`/api/jobs/${id}`, { method: 'DELETE' });
    await waitForEnd(client, id);
    expect((await rowsOf(path, '?sort=a')).rows).toEqual([[1], [2], [3]]);
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

  test('what is wrong with a file is named by file, row and column', async () => {
    const refused = async (csv: string, more = {}) => {
      const job = await parse(client, {
        mid,
        parser: 'csv',
        files: { bad: [utf8(csv)] },
        with: more,
      });
      expect([job.state, job.error?.code]).toEqual(['failed', 'parse_failed']);
      expect(job.error?.detail).toContain('(bad)');
      const { state, error } = await readUpload(client, job.uid);
      expect(state).toBe('failed');
      return error?.errors;
    };
    const good = '1,2\n'.repeat(60_000);
    const types = { a: 'integer', b: 'integer' };
    const reason = (value: string) =>
      `${value} is not an integer of 64 bits without leading zeros or a plus`;
    expect(await refused(`\n\na,b\n"1",2\n${good}x,3\n1,"q\nq"\n`, { types })).toEqual([
      { file: 0, row: 60_005, column: 'a', reason: reason('"x"') },
      { file: 0, row: 60_006, column: 'b', reason: reason('"q\\nq"') },
    ]);
    expect(await refused('a,b\n1,2\n1,2,3\n\n1\n')).toEqual([
      { file: 0, row: 3, reason: 'expected 2 values, found 3' },
      { file: 0, row: 5, reason: 'expected 2 values, found 1' },
    ]);
    expect(await refused('')).toEqual([{ file: 0, reason: 'the file is empty' }]);
    expect(await refused('a\nx\0y\n')).toEqual([
      { file: 0, row: 2, reason: 'there is a NUL character' },
    ]);
    const model = await client.get<{ parses: { state: string; error?: unknown }[] }>(
      `/api/models/${mid}`,
    );
    expect(model.parses.some(({ state, error }) => state === 'failed' && error)).toBe(true);
    await expectProblem(
      await client.fetch(`/api/models/${mid}/tables/bad/metadata`),
      404,
      'not_found',
    );
  });

  test('malformed rows that are tolerated are listed on upload and model, and the dialect in the metadata', async () => {
    const { mid } = await makeModel(client);
    const job = await parse(client, {
      mid,
      parser: 'csv',
      files: { left: [utf8('# day 1\r\nt;v\r\ns;mV\r\n1;0,5\r\n2\r\n3;NA\r\n')] },
      with: { comment: '#', units: true, decimal: ',', nulls: ['NA'], tolerance: 1 },
    });
    expect(job.state).toBe('succeeded');
    const skipped = {
      count: 1,
      errors: [{ file: 0, row: 5, reason: 'expected 2 values, found 1' }],
    };
    expect(await readUpload(client, job.uid)).toMatchObject({ state: 'done', skipped });
    const { parses } = await client.get<{ parses: unknown[] }>(`/api/models/${mid}`);
    expect(parses).toEqual([expect.objectContaining({ state: 'done', skipped })]);
    expect(await client.get(`/api/models/${mid}/tables/left/metadata`)).toEqual({
      rows: 2,
      columns: [
        { name: 't', type: 'integer', min: 1, max: 3, nulls: 0, unit: 's' },
        { name: 'v', type: 'number', min: 0.5, max: 0.5, nulls: 1, unit: 'mV' },
      ],
      dialect: {
        encoding: 'utf-8',
        delimiter: ';',
        quote: '"',
        decimal: ',',
        header: true,
        lineBreak: 'CRLF',
        comment: '#',
        skip: 1,
        units: true,
        nulls: ['NA'],
      },
    });
  });

  test('files and tables are removed by their kind, and their names are free again', async () => {
    const { mid } = await makeModel(client);
    const table = await makeTable(client, { mid, aid: 'one', csv: 'a\n2\n1\n' });
    await parse(client, { mid, parser: 'blob', files: { two: [utf8('bytes')] } });
    const file = `/api/models/${mid}/files/two`;
    const remove = (path: string, tag?: string) =>
      client.fetch(path, { method: 'DELETE', ...(tag && { headers: { 'If-Match': tag } }) });
    const blob = () =>
      client.fetch('/api/uploads', {
        method: 'POST',
        body: JSON.stringify({ mid, input: false, parser: 'blob', aids: ['one'] }),
      });
    const taken = await expectProblem(await blob(), 409, 'conflict');
    expect(taken.hint).toContain('DELETE /api/models/(mid)/tables/(aid)');

    const before = await client.fetch(`/api/models/${mid}`);
    await expectProblem(await remove(`/api/models/${mid}/files/one`), 404, 'not_found');
    await expectProblem(await remove(`/api/models/${mid}/tables/two`), 404, 'not_found');
    await expectProblem(await remove(table, '"another"'), 412, 'precondition_failed');
    const tag = (await client.fetch(`${table}/data`)).headers.get('ETag') ?? '';
    expect((await rowsOf(table, '?sort=a')).rows).toEqual([[1], [2]]);
    expect((await remove(table, tag)).status).toBe(204);
    expect((await remove(file)).status).toBe(204);
    await expectProblem(await client.fetch(`${table}/rows?sort=a`), 404, 'not_found');
    for (const path of [table, file]) await expectProblem(await remove(path), 404, 'not_found');
    const after = await client.fetch(`/api/models/${mid}`);
    expect(after.headers.get('ETag')).not.toBe(before.headers.get('ETag'));
    expect(((await after.json()) as { artifacts: unknown[] }).artifacts).toEqual([]);
    expect((await blob()).status).toBe(201);
  });

  test('more or fewer files than names fail, and nothing is half there', async () => {
    const { id: uid } = await client.post<{ id: string }>('/api/uploads', {
      mid,
      input: false,
      parser: 'blob',
      aids: ['x', 'y'],
    });
    await client.fetch(`/api/uploads/${uid}/files/0/parts/0`, {
      method: 'PUT',
      headers: { 'Content-Type': 'application/octet-stream' },
      body: 'x',
    });
    const finished = await client.post<{ job: string }>(`/api/uploads/${uid}/finished`, {
      uploaded: [1],
    });
    const job = await waitForEnd(client, finished.job);
    expect(job.error).toMatchObject({
      code: 'parse_failed',
      detail: expect.stringContaining('1 file and 2'),
    });
    await expectProblem(await client.fetch(`/api/models/${mid}/files/x`), 404, 'not_found');
  });

  test('a model deleted meanwhile takes no table, and a killed worker is followed by another', async () => {
    const line = `${'0123456789,'.repeat(20)}1\n`;
    const big = utf8(`${'c,'.repeat(20)}d\n${line.repeat(150_000)}`);
    const { mid: doomed } = await makeModel(client);
    const lost = await startParse(client, { mid: doomed, parser: 'csv', files: { big: [big] } });
    expect((await client.fetch(`/api/models/${doomed}`, { method: 'DELETE' })).status).toBe(204);
    expect((await waitForEnd(client, lost.job)).state).not.toBe('succeeded');

    const { job } = await startParse(client, { mid, parser: 'csv', files: { big: [big] } });
    const children = () => stack.pids().filter(({ name }) => name === 'windlass-child-parse');
    const worker = await waitFor(
      async () => {
        const { worker, state } = await client.get<{ worker: string | null; state: string }>(
          `/api/jobs/${job}`,
        );
        if (state === 'succeeded') throw new Error('it was too fast');
        return children().length > 0 && worker ? pidOfWorker(worker) : undefined;
      },
      { what: 'a child to read the table', timeoutMs: 60_000 },
    );
    const orphans = children().map(({ pid }) => pid);
    process.kill(worker, 'SIGKILL');
    await waitFor(() => !stack.pids().some(({ pid }) => orphans.includes(pid)), {
      what: 'the child to end with its worker',
    });
    // The next worker's child is killed alone: that worker starts another.
    const next = await waitFor(() => children()[0], {
      what: 'another worker to take the job',
      timeoutMs: 30_000,
    });
    process.kill(next.pid, 'SIGKILL');
    expect((await waitForEnd(client, job, 80_000)).state).toBe('succeeded');
    const page = await rowsOf(`/api/models/${mid}/tables/big`, '?offset=149999');
    expect([page.total, page.rows.length, page.rows[0]?.[20]]).toEqual([150_000, 1, 1]);
  });
});
