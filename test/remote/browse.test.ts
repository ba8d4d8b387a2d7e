import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { openSession } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

interface Listing {
  path: string;
  names: string[];
  sizes: number[];
  types: string[];
  mtimes: string[];
}

describeStack(missingPrograms('sshd'), 'browsing a host', form => {
  const directory = makeTempDir('browse');
  afterAll(() => directory.remove());
  const { stack, client, sshd } = useRemoteStack(form, { workers: 2 });

  const browse = (sid: string, path: string) =>
    client.fetch(`/api/remotes/${sid}/browse/${path}`, { method: 'POST' });

  for (const agent of [true, false]) {
    test(`lists files, folders and links ${agent ? 'with' : 'without'} an agent`, async () => {
      const sid = await openSession(client, sshd, { agent });
      const folder = join(directory.path, `some ${agent}`);
      mkdirSync(join(folder, 'sub'), { recursive: true });
      writeFileSync(join(folder, 'ä "quoted" 😀\n.png'), 'four');
      symlinkSync('sub', join(folder, 'to-sub'));
      symlinkSync('nowhere', join(folder, 'to-nowhere'));
      const answer = await browse(sid, encodeURI(folder.slice(1)));
      expect(answer.status).toBe(200);
      const listing = (await answer.json()) as Listing;
      expect(listing.path).toBe(folder);
      const types = Object.fromEntries(
        listing.names.map((name, index) => [name, listing.types[index]]),
      );
      expect(types).toEqual({
        'ä "quoted" 😀\n.png': 'f',
        sub: 'd',
        'to-sub': 'd',
        'to-nowhere': 'f',
      });
      expect(listing.sizes[listing.names.indexOf('ä "quoted" 😀\n.png')]).toBe(4);
      expect(listing.mtimes).toHaveLength(4);
      for (const time of listing.mtimes) expect(Date.parse(time)).toBeGreaterThan(0);
    });
  }

  test('an empty folder, and the first slash written or escaped', async () => {
    const sid = await openSession(client, sshd);
    const folder = join(directory.path, 'empty');
    mkdirSync(folder);
    for (const path of [folder.slice(1), folder, encodeURIComponent(folder)]) {
      expect(await (await browse(sid, path)).json()).toEqual({
        path: folder,
        names: [],
        sizes: [],
        types: [],
        mtimes: [],
      });
    }
  });

  test('an Idempotency-Key gives the same listing, and a new one once that is gone', async () => {
    const sid = await openSession(client, sshd);
    const folder = join(directory.path, 'again');
    mkdirSync(join(folder, 'first'), { recursive: true });
    const list = async () => {
      const answer = await client.fetch(`/api/remotes/${sid}/browse/${folder.slice(1)}`, {
        method: 'POST',
        headers: { 'Idempotency-Key': `again-${form.name}` },
      });
      return ((await answer.json()) as Listing).names.sort();
    };
    expect(await list()).toEqual(['first']);
    mkdirSync(join(folder, 'second'));
    expect(await list()).toEqual(['first']);
    // As upkeep leaves it an hour later.
    const sql = openStackDatabase(stack);
    const gone =
      await sql`update jobs set finished = now() - interval '61 minutes', stdout_bytes = 0
      where kind = 'browse' and session = ${sid} returning id`;
    await sql`delete from job_chunks where job in ${sql(gone.map(row => row.id))}`;
    expect(await list()).toEqual(['first', 'second']);
    // As a worker leaves it that saw no more signs of its reader.
    await sql`update jobs set state = 'cancelled', result = null where kind = 'browse' and session = ${sid}`;
    await sql.end();
    mkdirSync(join(folder, 'third'));
    expect(await list()).toEqual(['first', 'second', 'third']);
    // A GET depends on its Range, too.
    writeFileSync(join(folder, 'file'), '0123456789');
    const read = async (range: string) => {
      const answer = await client.fetch(`/api/remotes/${sid}/file/${folder.slice(1)}/file`, {
        headers: { 'Idempotency-Key': `range-${form.name}`, Range: range },
      });
      return answer.text();
    };
    expect([await read('bytes=0-1'), await read('bytes=8-9')]).toEqual(['01', '89']);
  });

  test('what cannot be listed is told by name', async () => {
    const sid = await openSession(client, sshd);
    const file = join(directory.path, 'file');
    writeFileSync(file, '');
    await expectProblem(await browse(sid, 'no/such/folder'), 404, 'not_found');
    const problem = await expectProblem(await browse(sid, file), 400, 'invalid_input');
    expect(problem.detail).toContain(`${file} is not a directory`);
    await expectProblem(await browse(sid, 'a%00b'), 400, 'invalid_input');
    await expectProblem(await browse(sid, '%ff'), 400, 'bad_request');
    await expectProblem(await browse('nobody', 'tmp'), 404, 'session_not_found');
  });

  test('a file comes whole or by range, and HEAD tells its size', async () => {
    const sid = await openSession(client, sshd);
    const file = join(directory.path, 'a file.bin');
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, n) => (n * 7) % 251));
    writeFileSync(file, bytes);
    const read = (range?: string, init: RequestInit = {}) =>
      client.fetch(`/api/remotes/${sid}/file${encodeURI(file)}`, {
        ...init,
        ...(range ? { headers: { Range: range } } : {}),
      });
    const whole = await read();
    expect([whole.status, whole.headers.get('Content-Length')]).toEqual([200, '300000']);
    expect(Buffer.from(await whole.arrayBuffer()).equals(bytes)).toBe(true);
    for (const [range, from, to] of [
      ['bytes=0-9', 0, 10],
      ['bytes=65530-131100', 65_530, 131_101],
      ['bytes=299990-', 299_990, 300_000],
      ['bytes=-5', 299_995, 300_000],
      ['bytes=299999-400000', 299_999, 300_000],
      ['bytes=-400000', 0, 300_000],
    ] as const) {
      const part = await read(range);
      expect([range, part.status, part.headers.get('Content-Range')]).toEqual([
        range,
        206,
        `bytes ${from}-${to - 1}/300000`,
      ]);
      expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(from, to))).toBe(true);
    }
    const beyond = await read('bytes=300000-');
    expect(beyond.headers.get('Content-Range')).toBe('bytes */300000');
    await expectProblem(beyond, 416, 'range_not_satisfiable');
    const head = await read(undefined, { method: 'HEAD' });
    expect([head.status, head.headers.get('Content-Length')]).toEqual([200, '300000']);
    expect((await read('bytes=5-2')).status).toBe(200);

    writeFileSync(file, '');
    expect(await (await read()).text()).toBe('');
    expect((await read(undefined, { method: 'HEAD' })).headers.get('Content-Length')).toBe('0');
    const missing = await client.fetch(`/api/remotes/${sid}/file/no/such`);
    await expectProblem(missing, 404, 'not_found');
    const folder = await client.fetch(`/api/remotes/${sid}/file${directory.path}`);
    await expectProblem(folder, 400, 'invalid_input');
  });

  test('reading leaves no channel behind', async () => {
    const sid = await openSession(client, sshd);
    const file = join(directory.path, 'read often');
    writeFileSync(file, 'some bytes');
    const url = `/api/remotes/${sid}/file${file.split('/').map(encodeURIComponent).join('/')}`;
    // More than both workers have channels, on a connection of sshd's ten.
    for (let n = 0; n < 24; n++) {
      const part = await client.fetch(url, { headers: { Range: 'bytes=-5' } });
      expect([n, part.status, await part.text()]).toEqual([n, 206, 'bytes']);
    }
  });
});
