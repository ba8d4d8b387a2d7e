import { beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { addUsers } from '../harness/clients/projects.ts';
import { type Metadata, makeTable, parse, type RowsPage, utf8 } from '../harness/clients/tables.ts';
import { makeModel, readUpload, someBytes } from '../harness/clients/uploads.ts';
import { waitForEnd } from '../harness/hosts/remote.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { outlastBrevity } from '../harness/wait-for.ts';

describeStack(undefined, 'tables and files over HTTP', form => {
  const { stack, client } = useStack(form);
  const database = useStackDatabase(stack);
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

  test('who waits for a view that another user cancels has it made by a job of their own', async () => {
    const { first, second } = await addUsers(stack, ['first', 'second']);
    const { pid, mid } = await makeModel(client);
    const acl = { readers: [{ user: 'first' }, { user: 'second' }] };
    await client.fetch(`/api/projects/${pid}`, { method: 'PUT', body: JSON.stringify({ acl }) });
    const path = await makeTable(client, { mid, aid: 'table', csv: 'a\n2\n3\n1\n' });
    const [stored] = await database`select object from artifacts where model = ${mid}`;
    const lock = database`hashtextextended(${`views ${stored?.object}`}, 0)`;
    await database`select pg_advisory_lock(${lock})`;
    try {
      const begun = await first.fetch(`${path}/rows?sort=a`, {
        headers: { Prefer: 'respond-async' },
      });
      const { id } = (await begun.json()) as { id: string };
      const rows = second.get<RowsPage>(`${path}/rows?sort=a`);
      await outlastBrevity();
      expect(await second.get('/api/jobs')).toMatchObject({ items: [] });
      await first.delete(`/api/jobs/${id}`);
      await database`select pg_advisory_unlock(${lock})`;
      expect((await waitForEnd(first, id)).state).toBe('cancelled');
      expect((await rows).rows).toEqual([[1], [2], [3]]);
      expect(await second.get('/api/jobs')).toMatchObject({ items: [{ state: 'succeeded' }] });
    } finally {
      await database`select pg_advisory_unlock_all()`;
    }
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
});
