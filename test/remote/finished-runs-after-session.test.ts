import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findMarked, makeMark } from '../faults/stubborn-processes.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { launchAsync, openSession, readOutput } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'the run of a session whose credential is erased', form => {
  const { stack, client, sshd } = useRemoteStack(form);

  test('is stopped and removed over the next connection to its account', async () => {
    const sid = await openSession(client, sshd);
    const mark = makeMark();
    const { id } = await launchAsync(client, sid, `echo begun; sleep ${mark}`);
    await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'its output' });
    await sshd.down();
    // As long after its end: it was cancelled while the host was unreachable, and nobody can log in for it any more.
    const sql = openStackDatabase(stack);
    await sql`update jobs set state = 'cancelled', finished = now(), cancel_requested = now(), lease_token = null
      where id = ${id}`;
    await sql`update sessions set ended = now(), sealed = null where sid = ${sid}`;
    await sql.end();
    await sshd.up();
    expect(findMarked(mark)).not.toEqual([]);
    const fence = join(sshd.home, '.windlass/started', id);
    const [, attempt = ''] = readFileSync(fence, 'utf8').trim().split(' ');
    const directory = join(sshd.home, '.windlass/runs', attempt);
    expect(existsSync(directory)).toBe(true);
    const next = await openSession(client, sshd);
    await waitFor(() => findMarked(mark).length === 0, { what: 'its end', timeoutMs: 20_000 });
    await waitFor(() => !existsSync(directory), { what: 'the end of its files' });
    await client.delete(`/api/remotes/${next}`);
    await waitFor(() => !existsSync(fence), { what: 'the end of its fence', timeoutMs: 20_000 });
  });

  test('is stopped when the session is deleted, also where its outcome is unknown', async () => {
    const sid = await openSession(client, sshd);
    const mark = makeMark();
    const { id } = await launchAsync(client, sid, `echo begun; sleep ${mark}`);
    await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'its output' });
    const sql = openStackDatabase(stack);
    await sql`update jobs set state = 'failed', finished = now(), lease_token = null,
      error = ${sql.json({ code: 'outcome_unknown', detail: 'Its host was unreachable for too long.' })} where id = ${id}`;
    await sql.end();
    await client.delete(`/api/remotes/${sid}`);
    await waitFor(() => findMarked(mark).length === 0, { what: 'its end', timeoutMs: 30_000 });
  });
});
