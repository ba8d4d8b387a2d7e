import { expect } from 'vitest';
import { HOST_KEY } from '../fixtures.ts';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError, type Tools } from '../tools.ts';

const at = (words: string) => `Everywhere: lists are paginated, ${words}`;

type Item = Record<string, unknown>;

interface List {
  path: string;
  /** What tells its items apart. */
  key: string;
  /** Keys of at least three of them. */
  made: unknown[];
  /** The member that holds the items. */
  items?: string;
}

/** Follows `next` from the first page to the last, in small steps and then in large ones. */
async function walk({ look }: Tools, { path, key, made, items = 'items' }: List): Promise<void> {
  const seen: unknown[] = [];
  let next: string | null = null;
  for (let pages = 0; pages === 0 || next !== null; pages++) {
    const limit: number = pages < 2 ? 1 : 1_000;
    const after: string = next === null ? '' : `&after=${encodeURIComponent(next)}`;
    const answer = await look('GET', `${path}?limit=${limit}${after}`);
    expectAnswer(answer, 200);
    const body = answer.json();
    const page = (body[items] as Item[]).map(item => item[key]);
    next = body.next as string | null;
    expect(body).toEqual({ ...body, next: next === null ? null : expect.stringMatching(/./) });
    // A page that says that there are more is a full one.
    expect(page.length).toBeLessThanOrEqual(limit);
    if (next !== null) expect(page).toHaveLength(limit);
    if (pages < 2) expect([path, pages, next]).toEqual([path, pages, expect.any(String)]);
    seen.push(...page);
  }
  expect([path, seen]).toEqual([path, [...new Set(seen)]]);
  expect(seen).toEqual(expect.arrayContaining(made));
}

async function times<T>(make: (n: number) => Promise<T>): Promise<T[]> {
  return [await make(1), await make(2), await make(3)];
}

/** Every list, from its first page to its last. */
export const LISTS: Row[] = [
  row(
    at('?limit=&after=, {items, next}; what is no limit is refused'),
    'GET /projects, GET /projects/{pid}/models',
    async ({ ask, make }) => {
      const pid = await make.newProject();
      const made = await times(() => make.newModel(pid));
      const list = `/projects/${pid}/models`;
      type Page = { items: { id: string }[]; next: string };
      const first = (await ask('GET', `${list}?limit=2`)).json<Page>();
      expect([first.items.length, typeof first.next]).toEqual([2, 'string']);
      const second = (
        await ask('GET', `${list}?limit=2&after=${encodeURIComponent(first.next)}`)
      ).json<Page>();
      expect(second.next).toBe(null);
      expect([...first.items, ...second.items].map(({ id }) => id).sort()).toEqual(made.sort());
      const whole = (await ask('GET', `${list}?limit=3`)).json<Page>();
      expect([whole.items.length, whole.next]).toEqual([3, null]);
      for (const query of ['limit=0', 'limit=x', 'limit=9999', 'other=1'])
        expectError(await ask('GET', `/projects?${query}`), 400, { code: 'invalid_input' });
    },
  ),
  row(
    at('an empty after is none'),
    'GET /jobs, GET /projects, GET /webhooks/{id}/deliveries, GET /audit',
    async ({ ask, make, world }) => {
      const json = { url: 'https://receiver.example/', kinds: ['parse'] };
      const { id } = (await make.call('POST', '/webhooks', { json })).json();
      await make.newProject();
      await make.parse(world.name('listed'), 'x', 'blob');
      for (const path of ['/jobs', '/projects', '/audit', `/webhooks/${id}/deliveries`]) {
        const { items } = (await ask('GET', `${path}?after=&limit=1`)).json<{ items: unknown[] }>();
        expect([path, items.length]).toEqual([path, 1]);
      }
      await make.call('DELETE', `/webhooks/${id}`);
    },
  ),
  row(
    at('projects, models, artifacts, tokens, uploads and jobs'),
    'GET /projects, GET /projects/{pid}/models, GET /models/{mid}, GET /users/-/tokens, GET /uploads, GET /jobs',
    async tools => {
      const { make, world } = tools;
      const { pid, mid } = await make.projectWithModel();
      const projects = await times(() => make.newProject());
      await walk(tools, { path: '/projects', key: 'id', made: projects });
      const models = await times(() => make.newModel(pid));
      await walk(tools, { path: `/projects/${pid}/models`, key: 'id', made: models });
      const names = await times(async () => {
        const name = world.name('listed/ö');
        const path = `/models/${mid}/parameters/${encodeURIComponent(name)}`;
        await make.call('PUT', path, { json: { value: 1 } });
        return name;
      });
      await walk(tools, { path: `/models/${mid}`, key: 'aid', made: names, items: 'artifacts' });
      const tokens = await times(async () => {
        const json = { name: world.name('token'), scope: 'read' };
        return (await make.call('POST', '/users/-/tokens', { json })).json().id;
      });
      await walk(tools, { path: '/users/-/tokens', key: 'id', made: tokens });
      for (const id of tokens) await make.call('DELETE', `/users/-/tokens/${id}`);
      const done = await times(() => make.parse(world.name('listed'), 'x', 'blob'));
      await walk(tools, { path: '/uploads', key: 'id', made: done.map(({ uid }) => uid) });
      await walk(tools, { path: '/jobs', key: 'id', made: done.map(({ id }) => id) });
      for (const id of projects) await make.call('DELETE', `/projects/${id}`);
    },
  ),
  row(at('users and hosts'), 'GET /users, GET /hosts', async tools => {
    const { make, world } = tools;
    const users = await times(async () => (await make.newUser('listed')).username);
    await walk(tools, { path: '/users', key: 'username', made: users });
    const hosts = await times(async () => {
      const name = world.name('listed');
      await make.call('POST', '/hosts', { json: { name, keys: [HOST_KEY] } });
      return name;
    });
    await walk(tools, { path: '/hosts', key: 'name', made: hosts });
    for (const name of hosts) await make.call('DELETE', `/hosts/${name}`);
    for (const name of users) await make.call('DELETE', `/users/${name}`);
  }),
  row(
    at('remote sessions and cached objects'),
    'GET /remotes, GET /projects/{pid}/cache',
    async tools => {
      const { make, world } = tools;
      const sessions = await times(() => make.newSession(false));
      await walk(tools, { path: '/remotes', key: 'sid', made: sessions });
      for (const sid of sessions) await make.call('DELETE', `/remotes/${sid}`);
      const pid = await make.newProject();
      const { path } = await make.video();
      const keys = await times(async () => {
        const key = `a/${world.name('listed ü')}`;
        const query = new URLSearchParams({ cache: 'project', project: pid, key });
        await make.call('GET', `${path}?${query}`);
        return key;
      });
      await walk(tools, { path: `/projects/${pid}/cache`, key: 'key', made: keys });
      await make.call('DELETE', `/projects/${pid}`);
    },
    'host',
  ),
];
