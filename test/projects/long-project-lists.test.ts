import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { readOwnProjects } from '../../api/projects/own-projects.ts';
import { newId } from '../../shared/ids.ts';
import { addUser } from '../harness/clients/users.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { countRowsRead } from '../harness/databases/rows-read.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack, useStackDatabase } from '../harness/stacks/use-stack.ts';

interface Listed {
  projects: { _id: string; description: string }[];
}

const given = withDatabase('project_lists');

test('each page reads as much as its own projects, however many there are', async () => {
  const { sql } = given.database();
  const COUNT = 10_000;
  await sql`insert into projects (pid, name, created)
    select lpad(n::text, 26, '0'), 'p', timestamptz '2026-01-01' + n * interval '1 second'
    from generate_series(1, ${COUNT}::int) n`;
  await sql`insert into project_members (project, username, role) select pid, 'ada', 'reader' from projects`;
  // Others are members of some of them.
  await sql`insert into project_members (project, username, role) select pid, 'eve', 'reader' from projects limit 100`;
  const TABLES = ['projects', 'project_members'];
  for (const table of TABLES) await sql`analyze ${sql(table)}`;
  let listed = 0;
  const read = await countRowsRead(given, TABLES, async one => {
    for await (const page of readOwnProjects(one.db, 'ada')) listed += page.length;
  });
  expect(listed).toBe(COUNT);
  // Their sizes, and the projects themselves.
  for (const table of TABLES)
    expect([table, (read[table] ?? 0) < 3 * COUNT]).toEqual([table, true]);
});

describeStack(undefined, 'a list of more projects than fit into memory', form => {
  const { stack, client: admin } = useStack(form);
  const database = useStackDatabase(stack);

  /** Projects with long descriptions, whose times of creation are equal or differ by microseconds. */
  async function addMany(username: string, count: number): Promise<void> {
    const prefix = newId().slice(0, -6);
    await database`
      insert into projects (pid, name, description, created)
        select ${prefix} || lpad(n::text, 6, '0'), 'p', repeat('ü', 9999) || n,
          timestamptz '2026-01-01' + (n / 2) * interval '1 microsecond'
        from generate_series(1, ${count}) n`;
    await database`
      insert into project_members (project, username, role)
        select pid, ${username}, 'reader' from projects where pid like ${`${prefix}%`}`;
  }
  const numbersIn = ({ projects }: Listed) =>
    projects.map(({ description }) => Number(description.replaceAll('ü', '')));

  test('is whole, the newest first', async () => {
    const { username, client } = await addUser(admin);
    await addMany(username, 1_700);
    const all = Array.from({ length: 1_700 }, (_, n) => 1_700 - n);
    expect(numbersIn(await client.get<Listed>('/api/projects_list'))).toEqual(all);
  });

  test('is read as the client reads it', async () => {
    const { username, client } = await addUser(admin);
    await addMany(username, 2_500);
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { Authorization: client.authorization };
      request(`${stack.url}/api/projects_list`, { headers }, resolve).on('error', reject).end();
    });
    await database`delete from project_members where username = ${username}`;
    const read = numbersIn(JSON.parse(await text(answer)) as Listed);
    expect(read[0]).toBe(2_500);
    expect(read.length).toBeLessThan(2_500);
  });
});
