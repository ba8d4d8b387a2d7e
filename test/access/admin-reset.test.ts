import { expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { newId } from '../../shared/ids.ts';
import { stackDatabaseUrl } from '../harness/databases/database.ts';
import { startProgram } from '../harness/run-program.ts';
import { describeUnless } from '../harness/skip.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { useStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const PASSWORD = 'correct horse';

describeUnless(undefined, 'windlass admin reset', () => {
  const { stack, client: admin } = useStack({ start: startStack });
  const database = useStackDatabase(stack);

  const byUrl = () => ({ DATABASE_URL: stackDatabaseUrl(stack) });
  const byFolder = () => ({ DATA_DIR: stack.dataDir });
  const run = (args: string[], settings: Record<string, string>) =>
    startProgram({
      args: ['dist/cli/main.js', 'admin', 'reset', ...args],
      settings,
      cwd: stack.dataDir,
    }).ended;
  const statusOf = async (username: string, password: string) =>
    (await new Client(stack.url, username, password).fetch('/api/users/-')).status;
  const told = async (target: string) =>
    (
      await database`
        select action, username from (
          select time, action, username, target from audit_pending union all
          select time, action, username, target from audit_entries) told
        where target = ${target} order by time, action`
    ).map(({ action, username }) => `${action} by ${username}`);

  test('makes a disabled user an administrator with a new password, and ends what was before', async () => {
    await admin.post('/api/users', { username: 'ada', password: PASSWORD });
    const ada = new Client(stack.url, 'ada', PASSWORD);
    const { id } = await ada.post<{ id: string }>('/api/users/-/tokens', {
      name: 't',
      scope: 'read',
    });
    const hook = await ada.post<{ id: string }>('/api/webhooks', {
      url: 'https://receiver.example/',
    });
    await database`update users set disabled = true where username = 'ada'`;
    const { code, stdout, stderr } = await run(['ada'], byUrl());
    expect([code, stderr]).toEqual([0, '']);
    const [, password = ''] = /^Password: (\S{16}) \(shown only now\)$/m.exec(stdout) ?? [];
    expect(await statusOf('ada', password)).toBe(200);
    await waitFor(async () => (await statusOf('ada', PASSWORD)) === 401, { what: 'the end' });
    const again = new Client(stack.url, 'ada', password);
    expect(await again.get('/api/users/ada')).toMatchObject({
      administrator: true,
      disabled: false,
    });
    expect(await again.get('/api/users/-/tokens')).toMatchObject({ items: [] });
    expect(await told('ada')).toEqual(
      expect.arrayContaining(['password by null', 'user.promote by null', 'user.enable by null']),
    );
    expect(await told(id)).toContain('token.delete by null');
    expect(await again.get('/api/webhooks')).toMatchObject({ items: [] });
    expect(await told(hook.id)).toContain('webhook.delete by null');
  });

  test('lets in at once who has tried too many passwords', async () => {
    await admin.post('/api/users', { username: 'lin', password: PASSWORD });
    await database`insert into failed_logins (key, failures, began)
      values ('127.0.0.1 lin', 1000, now()), ('* lin', 1000, now()), ('127.0.0.1 link', 7, now())`;
    expect(await statusOf('lin', 'wrong')).toBe(429);
    const { stdout } = await run(['lin', '--json'], byUrl());
    // A lock that was seen is kept in mind for a second.
    await waitFor(async () => (await statusOf('lin', JSON.parse(stdout).password)) === 200, {
      what: 'the login',
      timeoutMs: 10_000,
    });
    const kept =
      await database`delete from failed_logins where key = '127.0.0.1 link' returning failures`;
    expect(kept).toHaveLength(1);
  });

  test('ends what the user reads', async () => {
    await admin.post('/api/users', { username: 'eve', password: PASSWORD });
    const id = newId();
    await database`insert into jobs (id, kind, queue, owner, payload, state, not_before)
      values (${id}, 'video', 'video', 'eve', '{}', 'running', 'infinity')`;
    const path = `/api/jobs/${id}/events`;
    const stream = await new Client(stack.url, 'eve', PASSWORD).fetch(path);
    expect(stream.status).toBe(200);
    const read = stream.text().then(
      () => 'whole',
      () => 'cut off',
    );
    expect((await run(['eve'], byUrl())).code).toBe(0);
    expect(await read).toBe('cut off');
    await database`delete from jobs where id = ${id}`;
  });

  test('adds a user who is not there, and finds the service by its folder', async () => {
    const { code, stdout } = await run(['new', '--json'], byFolder());
    expect(code).toBe(0);
    const { password, ...record } = JSON.parse(stdout);
    expect(record).toEqual({ username: 'new', created: true });
    expect(await statusOf('new', password)).toBe(200);
    expect(await told('new')).toEqual(['user.create by null', 'user.promote by null']);
  });

  test('refuses a user of an identity provider, and what is no name', async () => {
    await database`insert into users (username, issuer, subject) values ('far', 'https://i', 's')`;
    const far = await run(['far'], byUrl());
    expect([far.code, far.stderr]).toEqual([1, expect.stringContaining('identity provider')]);
    const none = await run(['-- no'], byUrl());
    expect(none.code).toBe(1);
  });
});
