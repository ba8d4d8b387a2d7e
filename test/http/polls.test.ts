import type postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '../../shared/ids.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** Longer than any test may take: what is answered before was not held until then. It is the longest that there is. */
const LONG = 'wait=300';

describeStack(undefined, 'polls that wait', form => {
  const { stack, client } = useStack(form);
  let database: postgres.Sql;
  const sid = newId();
  let id: string;

  beforeAll(async () => {
    database = openStackDatabase(stack);
    // A video that waits for ever: nothing but these tests changes it.
    await database`insert into sessions (sid, owner, hostname, username, agent, opened)
      values (${sid}, ${stack.username}, 'host', 'user', true, now())`;
  });
  afterAll(() => database?.end());

  const begin = async () => {
    id = newId();
    await database`insert into jobs (id, kind, queue, owner, session, payload, state, not_before)
      values (${id}, 'video', 'video', ${stack.username}, ${sid}, '{}', 'running', 'infinity')`;
  };
  const change = (to = 'running') => database`update jobs set version = version + 1,
      progress = least(1, version / 100.0), state = ${to},
      finished = case when ${to} = 'running' then null else now() end,
      error = case when ${to} = 'failed' then '{"code":"video_failed","detail":"It broke."}'::jsonb end
    where id = ${id}`;

  for (const [what, path] of [
    ['a job', () => `/jobs/${id}`],
    ['the status of a video', () => `/remotes/${sid}/videos/${id}/status`],
  ] as const) {
    describe.each(['', '/api'])(`${what}, under "%s"`, prefix => {
      const poll = (headers: Record<string, string>) =>
        client.fetch(`${prefix}${path()}`, { headers });
      const tagOf = (answer: Response) => answer.headers.get('ETag') ?? '';
      /** The answer of a request that nothing but a change may end. */
      const changeUntilAnswered = async (headers: Record<string, string>) => {
        let answer: Response | undefined;
        const held = poll(headers).then(got => {
          answer = got;
        });
        await waitFor(
          async () => {
            // Whatever is changed before the request arrived is no news to it.
            if (!answer) await change();
            return answer;
          },
          { what: 'an answer', intervalMs: 100 },
        );
        await held;
        return answer as unknown as Response;
      };

      test('without If-None-Match it is held until the state at arrival has changed', async () => {
        await begin();
        const before = await poll({});
        expect(before.headers.get('Preference-Applied')).toBeNull();
        const answer = await changeUntilAnswered({ Prefer: LONG });
        expect([answer.status, answer.headers.get('Preference-Applied')]).toEqual([200, LONG]);
        expect(tagOf(answer)).not.toBe(tagOf(before));
      });

      test('nobody is held for longer than five minutes', async () => {
        await begin();
        const answer = await changeUntilAnswered({ Prefer: 'wait=999999999' });
        expect([answer.status, answer.headers.get('Preference-Applied')]).toEqual([200, LONG]);
      });

      test('with the present If-None-Match it is held until the state differs from that', async () => {
        await begin();
        const tag = tagOf(await poll({}));
        const answer = await changeUntilAnswered({ Prefer: LONG, 'If-None-Match': tag });
        expect(answer.status).toBe(200);
        expect(tagOf(answer)).not.toBe(tag);
      });

      test('with an older If-None-Match it is answered at once', async () => {
        await begin();
        const old = tagOf(await poll({}));
        await change();
        for (const known of [old, '"other"', '']) {
          const answer = await poll({ Prefer: LONG, 'If-None-Match': known });
          expect([known, answer.status]).toEqual([known, 200]);
          expect(tagOf(answer)).not.toBe(old);
        }
      });

      test('unchanged at the end of the time: 304, or 200 where nothing was named', async () => {
        await begin();
        const tag = tagOf(await poll({}));
        const named = await poll({ Prefer: 'wait=1', 'If-None-Match': tag });
        expect([named.status, tagOf(named), await named.text()]).toEqual([304, tag, '']);
        const unnamed = await poll({ Prefer: 'wait=1' });
        expect([unnamed.status, tagOf(unnamed)]).toEqual([200, tag]);
      });

      test('the end is told, and what has ended is not waited for', async () => {
        await begin();
        const tag = tagOf(await poll({}));
        const held = poll({ Prefer: LONG, 'If-None-Match': tag });
        await change('failed');
        const told = await held;
        expect([told.status, tagOf(told) === tag]).toEqual([200, false]);
        for (const headers of [{}, { 'If-None-Match': tagOf(told) }] as Record<string, string>[]) {
          const answer = await poll({ Prefer: LONG, ...headers });
          expect(answer.status).toBe('If-None-Match' in headers ? 304 : 200);
        }
      });

      test('an end is told that has the number of the version before, as after a failover', async () => {
        await begin();
        const tag = tagOf(await poll({}));
        await database`update jobs set state = 'succeeded', finished = now() where id = ${id}`;
        const answer = await poll({ 'If-None-Match': tag });
        expect([answer.status, tagOf(answer) === tag]).toEqual([200, false]);
      });
    });
  }

  test('a session that ends while the status of its video is held: 404', async () => {
    await begin();
    const held = client.fetch(`/api/remotes/${sid}/videos/${id}/status`, {
      headers: { Prefer: LONG },
    });
    const deleted = await client.fetch(`/api/remotes/${sid}`, { method: 'DELETE' });
    expect(deleted.status).toBe(204);
    // Its job is asked to end; here nobody carries it, so that it ends by our hand.
    await change('cancelled');
    expect((await held).status).toBe(404);
  });
});
