import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { pidOfWorker } from '../../shared/jobs/worker-id.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { parse, type RowsPage, startParse, utf8 } from '../harness/clients/tables.ts';
import {
  finishUpload,
  makeModel,
  partPath,
  putPart,
  readUpload,
} from '../harness/clients/uploads.ts';
import { waitForEnd } from '../harness/hosts/remote.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(undefined, 'uploads that make no table', form => {
  const { stack, client } = useStack(form, { workers: 2 });
  let mid: string;

  beforeAll(async () => {
    ({ mid } = await makeModel(client));
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

  test('a part that the store lost or changed fails the parse, and is named', async () => {
    // In the fleet form the objects are in another server, whose files are its own.
    if (form.name !== 'embedded') return;
    const rows = utf8(`a,b\n${Array.from({ length: 1_000 }, (_, n) => `${n},v${n}\n`).join('')}`);
    const cut = rows.indexOf(0x0a, 5_000) + 1;
    const damages = {
      cut: (path: string) => truncateSync(path, cut),
      changed: (path: string) => {
        const bytes = readFileSync(path);
        bytes[bytes.indexOf('\n7,') + 1] = 0x39;
        writeFileSync(path, bytes);
      },
      longer: (path: string) => writeFileSync(path, '1,2\n', { flag: 'a' }),
      gone: (path: string) => rmSync(path),
    };
    const parseDamaged = async (
      parser: string,
      damage: keyof typeof damages,
      { parts }: { parts: number },
    ) => {
      const begun = { mid, input: false, parser, aids: ['bad'] };
      const { id: uid } = await client.post<{ id: string }>('/api/uploads', begun);
      const folder = join(stack.dataDir, 'objects', 'objects', 'uploads', uid);
      const before: string[] = [];
      for (let part = 0; part < parts; part++) {
        before.push(...(part > 0 ? readdirSync(folder) : []));
        expect((await putPart(client, partPath(uid, 0, part), rows)).status).toBe(200);
      }
      const [last = ''] = readdirSync(folder).filter(name => !before.includes(name));
      damages[damage](join(folder, last));
      const { job } = (await (await finishUpload(client, uid, [parts])).json()) as { job: string };
      const { state, error } = await waitForEnd(client, job);
      const { detail, hint } = error ?? {};
      return {
        state,
        code: error?.code,
        detail,
        hint,
        errors: (await readUpload(client, uid)).error,
      };
    };
    const size = rows.length.toLocaleString('en');
    const found = {
      cut: `has other bytes in the object store (${cut.toLocaleString('en')} in all) than arrived (${size})`,
      changed: 'has other bytes in the object store than arrived',
      longer: `has other bytes in the object store (${(rows.length + 4).toLocaleString('en')} in all) than arrived (${size})`,
      gone: 'is not in the object store any more',
    };
    const cases = [
      ...(['cut', 'changed', 'longer', 'gone'] as const).flatMap(damage => [
        ['csv', damage, 1] as const,
        ['blob', damage, 2] as const,
      ]),
      // The object of a single part becomes the file's, unread.
      ...(['cut', 'longer', 'gone'] as const).map(damage => ['blob', damage, 1] as const),
    ];
    for (const [parser, damage, parts] of cases) {
      const reason = `part ${parts - 1} ${found[damage]}`;
      const ended = await parseDamaged(parser, damage, { parts });
      expect([parser, damage, parts, ended]).toMatchObject([
        parser,
        damage,
        parts,
        {
          state: 'failed',
          code: 'parse_failed',
          detail: expect.stringContaining(`file 0 (bad): ${reason}`),
          hint: expect.stringContaining('Upload the file again'),
          errors: { errors: [{ file: 0, reason }] },
        },
      ]);
    }
    // Each is told to who runs the service.
    const told = stack
      .log()
      .split('\n')
      .filter(line => line.includes('lost or changed a part'));
    expect(told).toHaveLength(cases.length);
    for (const line of told) expect(line).toMatch(/"level":50.*"object":"uploads\/\w+\/\w+"/);
    for (const path of ['tables/bad/metadata', 'files/bad'])
      await expectProblem(await client.fetch(`/api/models/${mid}/${path}`), 404, 'not_found');
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
    const page = await client.get<RowsPage>(`/api/models/${mid}/tables/big/rows?offset=149999`);
    expect([page.total, page.rows.length, page.rows[0]?.[20]]).toEqual([150_000, 1, 1]);
  });
});
