import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { QUEUES } from '../../shared/jobs/catalog.ts';
import { lockOf } from '../../shared/jobs/fair-share.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { openSession } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useProxiedStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'files written to a host', form => {
  const { stack, sshd, client, proxy } = useProxiedStack(form, {
    workers: 2,
    alone: 'its workers are killed',
  });
  const database = useStackDatabase(stack);
  let sid: string;
  let folder: string;
  beforeAll(async () => {
    sid = await openSession(client, sshd);
    folder = join(sshd.home, 'written');
    mkdirSync(folder);
  });
  const put = (
    path: string,
    body: string | Buffer,
    headers: Record<string, string> = {},
    query = '',
  ) =>
    client.fetch(`/api/remotes/${sid}/file${path}${query}`, {
      method: 'PUT',
      headers: { 'Content-Type': 'application/octet-stream', ...headers },
      body,
    });
  const digestOf = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('base64');
  const stored = () => {
    const objects = join(stack.dataDir, 'objects/objects/files');
    return existsSync(objects) ? readdirSync(objects, { recursive: true }).filter(isObject) : [];
  };
  const isObject = (name: string | Buffer) => String(name).includes('/');
  const leftovers = () => readdirSync(folder).filter(name => name.startsWith('.windlass'));

  test('a new file is 201, one that is replaced 200, with its mode', async () => {
    const path = join(folder, 'a file ä');
    const made = await put(path, 'first');
    expect(made.status).toBe(201);
    expect(await made.json()).toEqual({ path, size: 5, digest: digestOf('first') });
    expect(readFileSync(path, 'utf8')).toBe('first');
    chmodSync(path, 0o640);
    expect((await put(path, 'second')).status).toBe(200);
    expect(readFileSync(path, 'utf8')).toBe('second');
    expect(statSync(path).mode & 0o7777).toBe(0o640);
    expect((await put(path, '', {}, '?mode=0755')).status).toBe(200);
    expect([statSync(path).size, statSync(path).mode & 0o7777]).toEqual([0, 0o755]);
  });

  test('large bytes arrive as they are, and nothing stays beside them or in the store', async () => {
    const bytes = Buffer.alloc(20_000_001, Buffer.from('0123456789abcde'));
    const path = join(folder, 'large');
    const answer = await put(path, bytes, { 'Content-Digest': `sha-256=:${digestOf(bytes)}:` });
    expect(await answer.json()).toMatchObject({ size: bytes.length });
    expect(readFileSync(path).equals(bytes)).toBe(true);
    expect(leftovers()).toEqual([]);
    await waitFor(
      async () => {
        const [row] = await database<{ n: number }[]>`
          select count(*)::int as n from pending_deletions where object like 'files/%'`;
        return row?.n === 0;
      },
      { what: 'the removal of the stored bytes' },
    );
  });

  test('If-None-Match: * keeps what is there', async () => {
    const path = join(folder, 'kept');
    writeFileSync(path, 'before');
    const headers = { 'If-None-Match': '*' };
    await expectProblem(await put(path, 'after', headers), 412, 'precondition_failed');
    expect(readFileSync(path, 'utf8')).toBe('before');
    expect((await put(join(folder, 'fresh'), 'new', headers)).status).toBe(201);
    expect((await put(join(folder, 'fresh'), 'newer', { 'If-None-Match': '"a"' })).status).toBe(
      200,
    );
    expect(leftovers()).toEqual([]);
  });

  test('a name that the host does not take is an error of the request, with If-Match too', async () => {
    const path = join(folder, 'n'.repeat(300));
    const remove = () => client.fetch(`/api/remotes/${sid}/file${path}`, { method: 'DELETE' });
    for (const answer of [await put(path, 'x'), await remove()])
      expect((await expectProblem(answer, 400, 'invalid_input')).detail).toContain(
        'File name too long',
      );
    await expectProblem(await put(path, 'x', { 'If-Match': '*' }), 412, 'precondition_failed');
    if (!existsSync('/proc/self')) return;
    expect(
      (await expectProblem(await put('/proc/zz', 'x'), 400, 'invalid_input')).detail,
    ).toContain('/proc takes no new files');
  });

  test('a path that ends with a slash names no file', async () => {
    writeFileSync(join(folder, 'plain'), 'before');
    for (const path of [join(folder, 'plain/'), join(folder, 'nothing/'), `${folder}/`]) {
      const remove = client.fetch(`/api/remotes/${sid}/file${path}`, { method: 'DELETE' });
      for (const answer of [await put(path, 'x', {}, '?parents=true'), await remove])
        expect((await expectProblem(answer, 400, 'invalid_input')).detail).toContain('slash');
    }
    expect(readFileSync(join(folder, 'plain'), 'utf8')).toBe('before');
    expect(existsSync(join(folder, 'nothing'))).toBe(false);
  });

  test('If-Match holds for the state that was read, of PUT and of DELETE', async () => {
    const path = join(folder, 'tagged');
    const address = `/api/remotes/${sid}/file${path}`;
    const read = async () => (await client.fetch(address)).headers.get('ETag') ?? '';
    const remove = (tag: string) =>
      client.fetch(address, { method: 'DELETE', headers: { 'If-Match': tag } });
    const when = (tag: string) => put(path, 'mine', { 'If-Match': tag });
    writeFileSync(path, 'first');
    const first = await read();
    writeFileSync(path, 'other');
    for (const stale of [first, `W/${await read()}`, '"x"', ''])
      await expectProblem(await when(stale), 412, 'precondition_failed');
    await expectProblem(await remove(first), 412, 'precondition_failed');
    expect(readFileSync(path, 'utf8')).toBe('other');
    expect((await when(`"x", ${await read()}`)).status).toBe(200);
    expect((await when('*')).status).toBe(200);
    expect((await remove(await read())).status).toBe(204);
    await expectProblem(await when('*'), 412, 'precondition_failed');
    await expectProblem(await remove('*'), 412, 'precondition_failed');
    expect(existsSync(path)).toBe(false);
    expect(leftovers()).toEqual([]);
  });

  test('a missing folder is 404, and made where that is asked for', async () => {
    const path = join(folder, 'new/deep/file');
    await expectProblem(await put(path, 'x'), 404, 'not_found');
    expect((await put(path, 'x', {}, '?parents=true')).status).toBe(201);
    expect(readFileSync(path, 'utf8')).toBe('x');
    const below = await put(`${path}/a/b`, 'x', {}, '?parents=true');
    expect((await expectProblem(below, 400, 'invalid_input')).detail).toContain(
      `${path} is no directory`,
    );
  });

  test('bytes that are not written do not stay in the store', async () => {
    const until = () => waitFor(() => stored().length === 0, { what: 'their removal' });
    await until();
    await expectProblem(await put(join(folder, 'nowhere/file'), 'x'), 404, 'not_found');
    expect(stored()).toEqual([]);
    const key = { 'Idempotency-Key': 'once' };
    const path = join(folder, 'once');
    expect((await put(path, 'first', key)).status).toBe(201);
    await until();
    writeFileSync(path, 'changed since');
    const again = await put(path, 'first', key);
    expect(await again.json()).toEqual({ path, size: 5, digest: digestOf('first') });
    const others = [
      await put(path, 'other', key),
      await put(path, 'first', key, '?mode=0600'),
      await put(path, 'first', { ...key, 'If-None-Match': '*' }),
    ];
    for (const other of others) await expectProblem(other, 409, 'idempotency_conflict');
    expect(readFileSync(path, 'utf8')).toBe('changed since');
    expect(stored()).toEqual([]);
  });

  test('a repeat after the end of its session is answered, and whatever else is refused', async () => {
    const own = await openSession(client, sshd);
    const path = join(folder, 'repeated');
    const send = (key: string, body: string) =>
      client.fetch(`/api/remotes/${own}/file${path}`, {
        method: 'PUT',
        headers: { 'Content-Type': 'application/octet-stream', 'Idempotency-Key': key },
        body,
      });
    expect((await send('before', 'first')).status).toBe(201);
    await client.delete(`/api/remotes/${own}`);
    writeFileSync(path, 'changed since');
    const again = await send('before', 'first');
    expect(again.status).toBe(201);
    expect(await again.json()).toEqual({ path, size: 5, digest: digestOf('first') });
    await expectProblem(await send('before', 'other'), 409, 'idempotency_conflict');
    await expectProblem(await send('after', 'first'), 404, 'session_not_found');
    // What the key was for is told no more.
    await database`update idempotency_keys set created = now() - interval '25 hours' where key = 'before'`;
    await expectProblem(await send('before', 'first'), 404, 'session_not_found');
    expect(readFileSync(path, 'utf8')).toBe('changed since');
    expect(stored()).toEqual([]);
  });

  test('bytes that are not those of the digest change nothing', async () => {
    const path = join(folder, 'a file ä');
    const headers = { 'Content-Digest': `sha-256=:${digestOf('others')}:` };
    await expectProblem(await put(path, 'these', headers), 400, 'digest_mismatch');
    expect(statSync(path).size).toBe(0);
  });

  test('a link is followed, a folder and a bad mode are refused', async () => {
    const real = join(folder, 'real');
    writeFileSync(real, 'old');
    symlinkSync('real', join(folder, 'link'));
    expect((await put(join(folder, 'link'), 'by the link')).status).toBe(200);
    expect(readFileSync(real, 'utf8')).toBe('by the link');
    expect(existsSync(join(folder, 'link'))).toBe(true);
    const missing = join(folder, 'missing');
    symlinkSync('missing', join(folder, 'dangling'));
    expect((await put(join(folder, 'dangling'), 'of a link')).status).toBe(201);
    expect(readFileSync(missing, 'utf8')).toBe('of a link');
    expect(lstatSync(join(folder, 'dangling')).isSymbolicLink()).toBe(true);
    symlinkSync('loop', join(folder, 'loop'));
    await expectProblem(await put(join(folder, 'loop'), 'x'), 400, 'invalid_input');
    expect(lstatSync(join(folder, 'loop')).isSymbolicLink()).toBe(true);
    await expectProblem(await put(folder, 'x'), 400, 'invalid_input');
    await expectProblem(await put(real, 'x', {}, '?mode=rw'), 400, 'invalid_input');
  });

  /** Sends a request whose job waits for the dispatcher: its first attempt is of another epoch. */
  async function sendWaiting(kind: string, send: () => Promise<Response>): Promise<Response> {
    let answer: Promise<Response> | undefined;
    const own = openStackDatabase(stack);
    await own.begin(async sql => {
      for (const queue of QUEUES)
        await sql.unsafe(`select pg_advisory_xact_lock(${lockOf(queue)})`);
      answer = send();
      const isWaiting = () => sql`
        select from jobs where kind = ${kind} and finished is null and dispatched is null`;
      await waitFor(async () => (await isWaiting()).length > 0, { what: 'its job' });
    });
    await own.end();
    if (!answer) throw new Error('nothing was sent');
    return answer;
  }

  test('a job that has waited for a slot is no repeated one', async () => {
    const path = join(folder, 'lock');
    writeFileSync(path, 'mine');
    const taken = await sendWaiting('write-file', () =>
      put(path, 'mine', { 'If-None-Match': '*' }),
    );
    await expectProblem(taken, 412, 'precondition_failed');
    const gone = `/api/remotes/${sid}/file${join(folder, 'gone')}`;
    const removed = await sendWaiting('remove-file', () =>
      client.fetch(gone, { method: 'DELETE' }),
    );
    await expectProblem(removed, 404, 'not_found');
  });

  test('a job that has waited for its host is no repeated one', async () => {
    const path = join(folder, 'lock');
    proxy.refuse();
    const kept = put(path, 'mine', { 'If-None-Match': '*' });
    const gone = `/api/remotes/${sid}/file${join(folder, 'gone')}`;
    const removed = client.fetch(gone, { method: 'DELETE' });
    // Set as a job is released for the first time; it may have been claimed again since.
    const away = () => database`
      select from jobs where finished is null and unreachable_since is not null`;
    try {
      await waitFor(async () => (await away()).length === 2, { what: 'both to be released' });
    } finally {
      proxy.heal();
    }
    await expectProblem(await kept, 412, 'precondition_failed');
    await expectProblem(await removed, 404, 'not_found');
  });

  test('a file is removed; what is not there is 404, a folder 400', async () => {
    const remove = (path: string) =>
      client.fetch(`/api/remotes/${sid}/file${path}`, { method: 'DELETE' });
    const path = join(folder, 'real');
    expect((await remove(join(folder, 'link'))).status).toBe(204);
    expect(existsSync(path)).toBe(true);
    expect((await remove(path)).status).toBe(204);
    expect(existsSync(path)).toBe(false);
    await expectProblem(await remove(path), 404, 'not_found');
    await expectProblem(await remove(folder), 400, 'invalid_input');
  });

  test('the file comes whole though the link is cut and the worker is killed', async () => {
    const bytes = Buffer.alloc(60_000_000, Buffer.from('fedcba98765'));
    const path = join(folder, 'through faults');
    writeFileSync(path, 'before');
    proxy.throttle('up', 20_000_000);
    const answer = put(path, bytes);
    const writing = () => leftovers().some(name => statSync(join(folder, name)).size > 1_000_000);
    await waitFor(writing, { what: 'the first bytes' });
    expect(readFileSync(path, 'utf8')).toBe('before');
    proxy.cut();
    await waitFor(writing, { what: 'the second try' });
    stack.kill('windlass-worker');
    expect(await (await answer).json()).toMatchObject({ path, size: bytes.length });
    expect(readFileSync(path).equals(bytes)).toBe(true);
    expect(leftovers()).toEqual([]);
  });

  test('a download that its API could not show to be read can be asked for again', async () => {
    const path = join(folder, 'stalled');
    writeFileSync(path, '');
    truncateSync(path, 1 << 30);
    const fetchFile = () => client.fetch(`/api/remotes/${sid}/file${path}`);
    const states = async (state: string) => {
      const rows = await database`
        select 1 from jobs where kind = 'file' and label like ${`%${path}%`} and state = ${state}`;
      return rows.length;
    };
    // Either would take minutes.
    proxy.throttle('down', 5_000_000);
    try {
      const begun = await fetchFile();
      proxy.blackhole('down');
      const asked = fetchFile();
      await waitFor(async () => (await states('running')) === 2, { what: 'both to run' });
      stack.kill('windlass-api', 'SIGSTOP');
      proxy.heal();
      const areEnded = async () => (await states('cancelled')) === 2;
      await waitFor(areEnded, { what: 'the end of both', timeoutMs: 60_000 });
      stack.kill('windlass-api', 'SIGCONT');
      const answer = await asked;
      await expectProblem(answer, 503, 'unavailable');
      expect(answer.headers.get('Retry-After')).toBe('1');
      await expect(begun.arrayBuffer()).rejects.toThrow();
      const again = await fetchFile();
      expect(again.status).toBe(200);
      await again.body?.cancel();
    } finally {
      stack.kill('windlass-api', 'SIGCONT');
      proxy.heal();
      proxy.throttle('down', Number.POSITIVE_INFINITY);
    }
  });

  test('a download goes on while it is read, and ends with the API that reads it', async () => {
    const path = join(folder, 'read by few');
    writeFileSync(path, '');
    truncateSync(path, 1 << 30);
    const find = async () => {
      const [job] = await database`select state, stdout_bytes as bytes, reader_seen as seen,
        now() - created > interval '20 seconds' as is_old from jobs where kind = 'file' order by id desc limit 1`;
      return job;
    };
    // It would take minutes.
    proxy.throttle('down', 5_000_000);
    try {
      const answer = await client.fetch(`/api/remotes/${sid}/file${path}`);
      const reading = answer.body?.pipeTo(new WritableStream()).catch(() => {});
      await waitFor(async () => (await find())?.is_old, { what: '20 s', timeoutMs: 40_000 });
      expect(await find()).toMatchObject({ state: 'running' });
      stack.kill('windlass-api');
      await reading;
      const isEnded = async () => (await find())?.state === 'cancelled';
      await waitFor(isEnded, { what: 'the end of the download', timeoutMs: 40_000 });
    } finally {
      proxy.throttle('down', Number.POSITIVE_INFINITY);
    }
  });
});
