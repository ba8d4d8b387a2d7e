import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { jobsQuery, listJobs } from '../../api/jobs/queries/list-jobs.ts';
import { Client } from '../../servers/api-client.ts';
import { openDatabase } from '../../shared/database/connect.ts';
import { newId } from '../../shared/ids.ts';
import { RELEASE } from '../../shared/process/release.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import {
  holderOf,
  type Job,
  launchAsync,
  openSession,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

interface Page {
  items: (Job & { label: string | null; name: string | null })[];
  next: string | null;
}

const given = withDatabase('job_lists');

test('pages have each job that matches, though others are removed while one is read', async () => {
  const owner = 'ada';
  const since = Date.now() - 86_400_000;
  const ids = Array.from({ length: 10_100 }, (_, n) => newId(since + n)).reverse();
  const rare = ids[10_020] ?? '';
  await given.database().sql`
    insert into jobs (id, kind, queue, owner, payload, state, finished, name)
    select id, 'command', 'remote', ${owner}, '{}', 'succeeded', now(), case when id = ${rare} then 'rare' end
    from unnest(${`{${ids}}`}::text[]) id`;
  // Statements are sent one after the other, in the order in which they are asked for.
  const { db, sql, close } = openDatabase(given.url, { max: 1 });
  let removing: Promise<unknown> | undefined;
  const reserve = async () => {
    // Asked for when the statement that reads the page has been sent.
    setImmediate(() => {
      removing ??=
        sql`delete from jobs where id = any(${`{${ids.slice(0, 50)}}`}::text[])`.execute();
    });
  };
  const found: string[] = [];
  try {
    for (let after: string | undefined; ; ) {
      const query = jobsQuery.parse({ name: 'rare', limit: '1000', ...(after && { after }) });
      const { items, next } = await listJobs(db, { owner, query, reserve });
      await removing;
      found.push(...items.map(({ id }) => id));
      if (next === null) break;
      after = next;
    }
  } finally {
    await close();
  }
  expect(found).toEqual([rare]);
});

describeStack(missingPrograms('sshd'), 'lists of jobs', form => {
  const {
    stack,
    client: admin,
    sshd,
  } = useRemoteStack(form, {
    alone: 'drains its workers',
  });
  const database = () => openStackDatabase(stack);
  let user: Client;
  let sid: string;
  const username = `user-${newId()}`;

  beforeAll(async () => {
    await admin.post('/api/users', { username, password: 'of a user' });
    user = new Client(stack.url, username, 'of a user');
    sid = await openSession(user, sshd);
  });

  const list = (query: string, client = user) => client.get<Page>(`/api/jobs?${query}`);
  const idsOf = ({ items }: Page) => items.map(({ id }) => id);
  const launch = (command: string, name?: string) =>
    user.post<{ job: string }>('/api/remotes/launch', { sid, command, name });

  test('a record says what the job is, where it ran and for whom', async () => {
    const { job } = await launch('echo one\necho two', 'mine');
    const { items } = await list('limit=1');
    expect(items).toEqual([await user.get(`/api/jobs/${job}`)]);
    expect(items[0]).toMatchObject({
      id: job,
      label: 'echo one',
      name: 'mine',
      host: 'host',
      session: sid,
      owner: username,
      project: null,
      model: null,
      upload: null,
      worker: expect.stringMatching(/^[\w.-]+$/),
    });
    const [connect] = (await list('kind=connect')).items;
    expect(connect).toMatchObject({ label: `${sshd.username}@host`, session: sid, name: null });
    const retried = await user.post<Job>(`/api/jobs/${job}/retry`, {});
    expect(await waitForEnd(user, retried.id)).toMatchObject({ label: 'echo one', name: 'mine' });
  });

  test('a page of large errors has fewer than its limit, and the pages have all of them', async () => {
    const owner = `user-${newId()}`;
    await admin.post('/api/users', { username: owner, password: 'of a user' });
    const error = { code: 'invalid_table', detail: 'x'.repeat(100_000) };
    const ids = Array.from({ length: 150 }, () => newId());
    const sql = database();
    try {
      for (const id of ids)
        await sql`insert into jobs (id, kind, queue, owner, payload, state, error, finished, name)
          values (${id}, 'parse', 'parse', ${owner}, '{}', 'failed', ${sql.json(error)}, now(), 'large')`;
    } finally {
      await sql.end();
    }
    const theirs = new Client(stack.url, owner, 'of a user');
    for (const filter of ['', '&name=large']) {
      const found: string[] = [];
      for (let after = ''; ; ) {
        const page = await list(`limit=1000${filter}${after}`, theirs);
        expect(page.items.length).toBeLessThan(50);
        found.push(...idsOf(page));
        if (page.next === null) break;
        after = `&after=${page.next}`;
      }
      expect(found).toEqual(ids.sort().reverse());
    }
  });

  test('a page of parses with large results has fewer than its limit, and all of each', async () => {
    const owner = `user-${newId()}`;
    await admin.post('/api/users', { username: owner, password: 'of a user' });
    const ids = Array.from({ length: 100 }, () => newId());
    const sql = database();
    try {
      for (const id of ids)
        await sql`insert into jobs (id, kind, queue, owner, payload, state, result, finished, name)
          select ${id}, 'parse', 'parse', ${owner}, '{}', 'succeeded', jsonb_build_object('artifacts', jsonb_agg(md5(i || ${id}))), now(), 'made'
          from generate_series(1, 27000) i`;
    } finally {
      await sql.end();
    }
    const theirs = new Client(stack.url, owner, 'of a user');
    for (const filter of ['', 'name=made']) {
      const page = await list(filter, theirs);
      expect(page.items.length).toBeLessThan(10);
      expect(page.next).toBe(page.items.at(-1)?.id);
      expect(idsOf(page)).toEqual(ids.sort().reverse().slice(0, page.items.length));
      for (const { result } of page.items)
        expect((result as { artifacts: string[] }).artifacts).toHaveLength(27_000);
    }
  });

  test.each(['error', 'batch'])('so has a page of jobs with a large %s', async column => {
    const owner = `user-${newId()}`;
    await admin.post('/api/users', { username: owner, password: 'of a user' });
    const ids = Array.from({ length: 20 }, () => newId());
    const words = { code: 'x', engine: 'slurm', id: null, reason: null, nodes: null, overFor: 0 };
    const sql = database();
    try {
      for (const id of ids)
        await sql`insert into jobs (id, kind, queue, owner, payload, state, ${sql(column)}, finished)
          select ${id}, 'batch', 'remote', ${owner}, '{}', 'failed',
            ${sql.json(words)} || jsonb_build_object('state', long, 'detail', long), now()
          from (select string_agg(md5(i || ${id}), '') long from generate_series(1, 13000) i) made`;
    } finally {
      await sql.end();
    }
    const page = await list('', new Client(stack.url, owner, 'of a user'));
    expect(page.items.length).toBeLessThan(10);
    expect(page.next).toBe(page.items.at(-1)?.id);
    expect(idsOf(page)).toEqual(ids.sort().reverse().slice(0, page.items.length));
  });

  test('each filter keeps what matches alone', async () => {
    const name = newId();
    const { job } = await launch(`echo ${name} Done`, name);
    const { created } = await user.get<{ created: string }>(`/api/jobs/${job}`);
    const after = new Date(Date.parse(created) + 1).toISOString();
    for (const query of [
      `name=${name}`,
      `label=${name.toUpperCase()}%20done`,
      `name=${name}&state=failed&state=succeeded&kind=command&host=host&session=${sid}`,
      `name=${name}&since=${created}&until=${after}`,
    ])
      expect([query, idsOf(await list(query))]).toEqual([query, [job]]);
    for (const query of [
      `name=${name}x`,
      `name=${name}&state=running`,
      `name=${name}&state=queued&state=running`,
      `name=${name}&kind=video`,
      `name=${name}&host=other`,
      `name=${name}&project=${newId()}`,
      `name=${name}&model=${newId()}`,
      `name=${name}&since=${after}`,
      `name=${name}&until=${created}`,
    ])
      expect([query, await list(query)]).toEqual([query, { items: [], next: null }]);
    // Times that ISO 8601 knows and PostgreSQL's own reading refuses.
    for (const since of ['2026-01-01T00:00:00%2B23:36', '0000-01-01T00:00:00Z'])
      expect((await user.fetch(`/api/jobs?since=${since}`)).status).toBe(200);
    const last = '9999-12-31T23:59:59-23:59';
    expect((await user.fetch(`/api/jobs?until=${last}`)).status).toBe(200);
    for (const wrong of ['state=done', 'kind=any', 'since=yesterday', 'name=%00'])
      await expectProblem(await user.fetch(`/api/jobs?${wrong}`), 400, 'invalid_input');
  });

  test("administrators list everybody's, and see of others' work only how it goes", async () => {
    const { job } = await launch('echo secret', 'secret');
    for (const owner of [username, '*']) {
      const page = await list(`owner=${owner}&kind=command&limit=1000`, admin);
      const found = page.items.find(({ id }) => id === job);
      expect(found).toMatchObject({ owner: username, host: 'host', state: 'succeeded' });
      expect(JSON.stringify(page)).not.toContain('secret');
    }
    for (const filter of ['label=secret', 'name=secret', `session=${sid}`])
      await expectProblem(await admin.fetch(`/api/jobs?owner=*&${filter}`), 400, 'invalid_input');
    await expectProblem(await user.fetch('/api/jobs?owner=*'), 403, 'forbidden');
    expect(idsOf(await list(`owner=${username}&name=secret`))).toEqual([job]);
  });

  describe('on a table that has grown', () => {
    const COUNT = 25_000;
    let rows: string[];
    let first: string;
    let sql: ReturnType<typeof database>;

    beforeAll(async () => {
      sql = database();
      const since = Date.now() - 86_400_000;
      rows = Array.from({ length: COUNT }, (_, n) => newId(since + n));
      await sql`insert into jobs (id, kind, queue, owner, payload, state, finished, created)
        select id, 'command', 'remote', ${username}, '{}', 'succeeded', now(), now() from unnest(${rows}::text[]) id`;
      first = rows[0] ?? '';
      await sql`update jobs set name = 'rare' where id = ${first}`;
    });
    afterAll(async () => {
      await sql`delete from jobs where id = any(${rows}::text[])`;
      await sql.end();
    });

    test('a page looks through some jobs and tells where to go on, to the last one', async () => {
      let pages = 0;
      const found: string[] = [];
      for (let after = ''; ; pages++) {
        const { items, next } = await list(`name=rare${after && `&after=${after}`}`);
        found.push(...items.map(({ id }) => id));
        if (next === null) break;
        after = next;
      }
      expect(found).toEqual([first]);
      expect(pages).toBe(2);
    });

    test('open jobs are found however many came later', async () => {
      await sql`update jobs set finished = null, state = 'queued', not_before = 'infinity' where id = ${first}`;
      expect(idsOf(await list('state=queued&state=running'))).toEqual([first]);
    });
  });

  test('who runs what, on which worker; a worker that drains finishes what it has', async () => {
    interface Workers {
      items: { id: string; running: number; draining: boolean; kinds: string[] }[];
    }
    const read = async () => (await admin.get<Workers>('/api/workers')).items;
    const put = (draining: boolean) => ({ method: 'PUT', body: JSON.stringify({ draining }) });
    const setDraining = async (id: string, draining: boolean) =>
      (await admin.fetch(`/api/workers/${id}`, put(draining))).json();
    const long = await launchAsync(user, sid, 'while ! test -e "$HOME/go"; do sleep 0.1; done');
    await holderOf(user, long.id);
    const { worker } = await user.get<{ worker: string }>(`/api/jobs/${long.id}`);
    expect(await read()).toContainEqual(
      expect.objectContaining({ id: worker, running: 1, draining: false, version: RELEASE }),
    );
    const remote = (await read()).filter(({ kinds }) => kinds.includes('command'));
    for (const { id } of remote)
      expect(await setDraining(id, true)).toMatchObject({ id, draining: true });
    const waiting = await launchAsync(user, sid, 'true');
    await writeFile(join(sshd.home, 'go'), '');
    expect(await waitForEnd(user, long.id)).toMatchObject({ state: 'succeeded', worker });
    expect(await user.get<Job>(`/api/jobs/${waiting.id}`)).toMatchObject({ state: 'queued' });
    for (const { id } of remote) await setDraining(id, false);
    expect(await waitForEnd(user, waiting.id)).toMatchObject({ state: 'succeeded' });
    const sql = database();
    await sql`insert into workers (id, host, pid, slots, seen)
      select 'dead', host, pid, slots, now() - interval '1 minute' from workers limit 1`;
    await sql.end();
    for (const id of ['none', 'dead'])
      await expectProblem(await admin.fetch(`/api/workers/${id}`, put(true)), 404, 'not_found');
    const stale = { ...put(true), headers: { 'If-Match': '"any"' } };
    const refused = await admin.fetch(`/api/workers/${remote[0]?.id}`, stale);
    await expectProblem(refused, 412, 'precondition_failed');
    // What it says without the condition is said with it (RFC 9110, 13.2.1).
    await expectProblem(await admin.fetch('/api/workers/none', stale), 404, 'not_found');
    await expectProblem(await user.fetch(`/api/workers/${remote[0]?.id}`, stale), 403, 'forbidden');
    await expectProblem(await user.fetch('/api/workers'), 403, 'forbidden');
  });
});
