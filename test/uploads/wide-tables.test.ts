import { beforeAll, expect, test } from 'vitest';
import { makeTable } from '../harness/clients/tables.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { expectFlat, watchMemory } from '../harness/stacks/memory.ts';
import { useStack, useStackDatabase } from '../harness/stacks/use-stack.ts';

const TABLES = 9;

describeStack(undefined, 'tables of many columns', form => {
  const { stack, client } = useStack(form);
  const database = useStackDatabase(stack);
  let mid: string;

  beforeAll(async () => {
    ({ mid } = await makeModel(client));
  });

  test('who reads many at once takes no memory for their statistics, and keeps nobody from answers', async () => {
    // As earlier releases made them: 18 MB of 2,500 columns, most of it the frequent texts.
    await database`
      with texts as (
        select jsonb_agg(jsonb_build_object('value', repeat(chr(128512 + k), 78) || 'x', 'count', 1)) as top
        from generate_series(0, 19) as k),
      columns as (
        select jsonb_agg(jsonb_build_object('name', 'c' || i, 'type', 'text', 'nulls', 0, 'top', top,
          'min', repeat(chr(128512), 78), 'max', repeat(chr(128531), 78)) order by i) as columns
        from texts, generate_series(0, 2499) as i)
      insert into artifacts (model, aid, kind, object, size, rows, columns)
      select ${mid}, 'w' || t, 'table', 'artifacts/' || ${mid} || '/w' || t, 1, 2, columns
      from columns, generate_series(1, ${TABLES}::int) as t`;
    const memory = watchMemory(stack);
    const paths = Array.from({ length: 60 }, (_, i) => {
      const path = `/api/models/${mid}/tables/w${1 + (i % TABLES)}`;
      return i < 54 ? `${path}/rows?offset=2&limit=1&columns=c7` : `${path}/metadata`;
    });
    let isOver = false;
    const others: number[] = [];
    const ask = async () => {
      while (!isOver) others.push((await client.fetch('/api/users/-')).status);
    };
    const asking = ask();
    const statuses = await Promise.all(
      paths.map(async path => {
        const answer = await client.fetch(path);
        await answer.arrayBuffer();
        return answer.status;
      }),
    );
    isOver = true;
    await asking;
    expect([...new Set(statuses), ...new Set(others)]).toEqual([200, 200]);
    expectFlat(memory.growth());
  });

  test('texts that were not counted when the table was made are counted when asked for', async () => {
    const csv = 's,n\na,1\nb,2\na,3\n,4\n';
    const path = await makeTable(client, { mid, aid: 'uncounted', csv });
    await database`
      update artifacts set columns = columns #- '{0,top}' where model = ${mid} and aid = 'uncounted'`;
    expect(await client.get(`${path}/histogram?column=s`)).toEqual({
      column: 's',
      nulls: 1,
      values: [
        { value: 'a', count: 2 },
        { value: 'b', count: 1 },
      ],
    });
    const { columns } = await client.get<{ columns: unknown[] }>(`${path}/metadata`);
    expect(columns[0]).toMatchObject({ name: 's', min: 'a', max: 'b', nulls: 1 });
  });
});
