import { expect, test } from 'vitest';
import { createToken } from '../../api/identity/api-tokens.ts';
import type { WriteAudit } from '../../api/identity/audit.ts';
import { makeLink } from '../../api/identity/links.ts';
import { lockAdministrator, lockUnchangedUser } from '../../api/identity/lock-user.ts';
import { beginLogin } from '../../api/identity/logins.ts';
import { removeUser } from '../../api/identity/remove-user.ts';
import { Client } from '../../servers/api-client.ts';
import { recordAudit } from '../../shared/audit/audit.ts';
import { users } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { makeTable } from '../harness/clients/tables.ts';
import { PASSWORD } from '../harness/clients/users.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const given = withDatabase('reused-names');
const noAudit = async () => {};

test('a request of a removed user makes nothing in the name of the next one', async () => {
  const { db } = given.database();
  const add = async () => {
    const [row] = await db
      .insert(users)
      .values({ username: 'u', passwordHash: '', administrator: true })
      .returning();
    if (!row) throw new Error('The user was not added.');
    return row;
  };
  const removed = await add();
  await db.transaction(tx => removeUser(tx, 'u', noAudit));
  await add();

  const login = { timeout: 60, instead: [], auditAs: () => noAudit };
  expect(await beginLogin(db, removed, login)).toBeUndefined();
  const link = { address: { path: '/api/jobs', query: '' }, seconds: 60, audit: noAudit };
  const keys = { SECRET_KEY: 'key', SECRET_KEY_BEFORE: undefined };
  const makes = [
    () => createToken(db, removed, { name: 't', scope: 'write' }, noAudit),
    () => makeLink(db, keys, { user: removed }, link),
    () => db.transaction(tx => lockUnchangedUser(tx, removed)),
    () => db.transaction(tx => lockAdministrator(tx, removed)),
  ];
  for (const make of makes) await expect(make()).rejects.toMatchObject({ code: 'unauthorized' });
});

test('the entries about the projects of a removed user are written in one statement', async () => {
  const { db, sql } = given.database();
  await db.insert(users).values({ username: 'v', passwordHash: '' });
  await sql`insert into projects (pid, name) select 'p' || n, 'p' from generate_series(1, 300) n`;
  await sql`insert into project_members (project, username, role) select pid, 'v', 'administrator' from projects`;
  const by = { user: 'admin', address: '127.0.0.1', requestId: null };
  const audit: WriteAudit = (tx, action, target = null) =>
    recordAudit(tx, { ...by, action, target });
  await db.transaction(tx => removeUser(tx, 'v', audit));
  // Rows of one statement have one number of a command within their transaction.
  const written = await sql`
    select action, username, address, outcome, count(distinct target)::int as targets, count(distinct cmin::text)::int as statements
    from audit_pending group by 1, 2, 3, 4 order by action`;
  const entry = { username: 'admin', address: '127.0.0.1', outcome: 'ok' };
  const each = { targets: 300, statements: 1 };
  expect(written).toEqual(
    ['project.acl', 'project.delete'].map(action => ({ action, ...entry, ...each })),
  );
});

describeStack(undefined, 'a request of a user whose name another gets meanwhile', form => {
  const { stack, client: admin } = useStack(form);
  const database = useStackDatabase(stack);

  const add = (username: string) =>
    admin.post('/api/users', { username, password: PASSWORD, administrator: true });
  const addSomebody = async () => {
    const username = `user-${newId()}`;
    await add(username);
    return { username, client: new Client(stack.url, username, PASSWORD) };
  };

  /** The status of a request that waits for a lock while its user goes, and the jobs that the next one then has. */
  async function replaceMeanwhile(
    username: string,
    { lock, ask }: { lock: string; ask: () => Promise<Response> },
  ) {
    const holder = openStackDatabase(stack);
    try {
      await holder`begin`;
      await holder.unsafe(lock);
      const [held] = await holder`select pg_backend_pid() as pid`;
      const answer = ask();
      const isWaiting = async () =>
        (
          await database`select from pg_stat_activity where ${held?.pid} = any(pg_blocking_pids(pid))
            and query ~ '"table_views"."id" = |pg_advisory_xact_lock'`
        ).length > 0;
      await waitFor(isWaiting, { what: 'the request to wait' });
      await admin.delete(`/api/users/${username}`);
      await add(username);
      await holder`commit`;
      const { status } = await answer;
      const jobs = await database`select kind from jobs where owner = ${username}`;
      return { status, jobs: jobs.map(({ kind }) => kind) };
    } finally {
      await holder.end();
    }
  }

  test('makes no view', async () => {
    const [owner, reader] = [await addSomebody(), await addSomebody()];
    const acl = { readers: [{ user: reader.username }] };
    const { id: pid } = await owner.client.post<{ id: string }>('/api/projects', {
      name: 'shared',
      acl,
    });
    const { id: mid } = await owner.client.post<{ id: string }>(`/api/projects/${pid}/models`, {
      name: 'model',
      'model-type': 'any',
    });
    const table = await makeTable(owner.client, { mid, aid: 'table', csv: 'a,b\n2,x\n1,y\n' });
    const lock = 'lock table table_views in access exclusive mode';
    const ask = () => reader.client.fetch(`${table}/rows?sort=a`);
    expect(await replaceMeanwhile(reader.username, { lock, ask })).toEqual({
      status: 404,
      jobs: [],
    });
  });

  test('scans no host', async () => {
    const { username, client } = await addSomebody();
    const key = newId();
    const lock = `select pg_advisory_xact_lock(hashtextextended(E'${username}\\nPOST /hosts\\n${key}', 0))`;
    const body = JSON.stringify({ name: newId(), address: '127.0.0.1', port: 1, trust: 'now' });
    const ask = () =>
      client.fetch('/api/hosts', { method: 'POST', headers: { 'Idempotency-Key': key }, body });
    expect(await replaceMeanwhile(username, { lock, ask })).toEqual({ status: 401, jobs: [] });
  });
});
