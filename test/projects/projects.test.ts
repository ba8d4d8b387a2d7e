import { beforeAll, expect, test } from 'vitest';
import type { Client } from '../../servers/api-client.ts';
import { newId } from '../../shared/ids.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import {
  addUsers,
  makeModel,
  makeProject,
  PEOPLE,
  type People,
} from '../harness/clients/projects.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { connectClient } from '../harness/hosts/remote.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

interface Acl {
  administrators: { user: string }[];
  writers: { user: string }[];
  readers: { user: string }[];
}
interface Project {
  id: string;
  name: string;
  description: string;
  role: string;
  acl: Acl;
}
interface Page {
  items: { id: string; key: string }[];
  next: string | null;
}

const UNKNOWN = '00000000000000000000000000';
const named = (...users: string[]) => users.map(user => ({ user }));

describeStack(undefined, 'projects and models', form => {
  const stack = useStarted(() => form.start());
  let people: People;

  beforeAll(async () => {
    people = await addUsers(stack, PEOPLE);
  });

  const send = (client: Client, method: string, path: string, body?: unknown, headers = {}) =>
    client.fetch(path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const put = (client: Client, path: string, body: unknown, tag?: string) =>
    send(client, 'PUT', path, body, tag === undefined ? {} : { 'If-Match': tag });
  const tagOf = async (client: Client, path: string) =>
    (await client.fetch(path)).headers.get('ETag') ?? '';
  const removeUser = (name: string) => stack.api(`/api/users/${name}`, { method: 'DELETE' });
  const fieldsOf = async (response: Response) =>
    (await expectProblem(response, 400, 'invalid_input')).fields?.map(({ field }) => field);

  test('a burst of looks at a project with a large cache holds up nobody else', async () => {
    const [large, other] = [await makeProject(people), await makeProject(people)];
    const entries = [7_000_000, ...Array.from({ length: 100_000 }, () => 1)];
    const sql = openStackDatabase(stack);
    await sql`
      insert into cache_entries (project, key, object, type, size, used)
      select ${large}, n, 'videos/' || n, 'video/mp4', size, timestamptz '2026-01-01' + n * interval '1 second'
      from unnest(${`{${entries}}`}::bigint[]) with ordinality entry(size, n)`;
    const burst = Array.from({ length: 200 }, () => people.owner.fetch(`/api/projects/${large}`));
    // Until the first of them is answered the others have come.
    await Promise.race(burst);
    const looked = await people.reader.fetch(`/api/projects/${other}`);
    expect(looked.status).toBe(200);
    const answers = await Promise.all(burst);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(await answers[199]?.json()).toMatchObject({
      cache: { bytes: 7_100_000, oldest: '2026-01-01T00:00:01.000Z' },
    });
    await sql.end();
  });

  test('a list has fewer than were asked for where their texts are long, and goes on', async () => {
    const text = '\u6f22'.repeat(20_000);
    const walk = async (path: string) => {
      const pages: string[][] = [];
      for (let after = ''; ; ) {
        const page = await people.owner.get<Page>(`${path}?limit=1000${after}`);
        pages.push(page.items.map(item => item.id));
        if (page.next === null) return pages;
        after = `&after=${page.next}`;
      }
    };
    const make = async (path: string, body: object) => {
      const { id } = (await (await send(people.owner, 'POST', path, body)).json()) as Project;
      return id;
    };
    const pid = await makeProject(people);
    const models = `/api/projects/${pid}/models`;
    const long = { name: 'long', 'model-type': 'any', description: text, marking: text };
    const made: string[] = [];
    for (let n = 0; n < 40; n++) made.push(await make(models, long));
    const pages = await walk(models);
    // 120,000 bytes each, and 4 MiB a page.
    expect(pages.map(ids => ids.length)).toEqual([34, 6]);
    expect(pages.flat()).toEqual(made.toSorted());

    const projects: string[] = [];
    for (let n = 0; n < 72; n++)
      projects.push(await make('/api/projects', { name: 'long', description: text }));
    const lists = await walk('/api/projects');
    expect(lists.length).toBeGreaterThan(1);
    expect(lists.flat()).toEqual(expect.arrayContaining(projects));
    expect(new Set(lists.flat()).size).toBe(lists.flat().length);
    for (const id of [pid, ...projects]) await people.owner.delete(`/api/projects/${id}`);
  });

  test('a model tells of as many parses as name little enough, the newest first', async () => {
    const mid = await makeModel(people, await makeProject(people));
    const database = openStackDatabase(stack);
    const aids = Array.from({ length: 300 }, (_, n) => `${n} `.padEnd(218, '\u6f22'));
    const begin = async (names: string[]) => {
      const [uid, job] = [newId(), newId()];
      await database`insert into jobs (id, kind, queue, owner, payload, state, finished)
        values (${job}, 'parse', 'parse', 'owner', '{}', 'succeeded', now())`;
      await database`insert into uploads (uid, owner, model, parser, parameters, aids, input, job)
        values (${uid}, 'owner', ${mid}, 'blob', '{}', ${names}, true, ${job})`;
    };
    try {
      for (let n = 0; n < 25; n++) await begin(aids);
      await begin(['newest']);
    } finally {
      await database.end();
    }
    const path = `/api/models/${mid}`;
    const answer = await people.reader.fetch(path);
    const { parses } = (await answer.json()) as { parses: { aids: string[] }[] };
    expect(parses[0]?.aids).toEqual(['newest']);
    expect(parses[1]?.aids).toEqual(aids);
    expect(parses.length).toBeGreaterThan(20);
    expect(parses.length).toBeLessThan(25);
    const headers = { 'If-None-Match': answer.headers.get('ETag') ?? '' };
    expect((await people.reader.fetch(path, { headers })).status).toBe(304);
  });

  test('a project is made, found, listed and changed in part', async () => {
    const { owner } = people;
    const made = await send(owner, 'POST', '/api/projects', { name: 'first' });
    const { id } = (await made.json()) as Project;
    expect([made.status, made.headers.get('Location')]).toEqual([201, `/api/projects/${id}`]);
    const path = `/projects/${id}`;
    expect(await owner.get(path)).toEqual({
      id,
      name: 'first',
      description: '',
      role: 'administrator',
      acl: { administrators: named('owner'), writers: [], readers: [] },
      cache: { bytes: 0, limit: 0, oldest: null },
      created: expect.stringMatching(/Z$/),
      updated: expect.stringMatching(/Z$/),
    });
    const tag = await tagOf(owner, path);
    const unchanged = await owner.fetch(path, { headers: { 'If-None-Match': tag } });
    expect(unchanged.status).toBe(304);
    const changed = await put(owner, path, { description: 'more\nlines' }, tag);
    expect([changed.status, await changed.json()]).toMatchObject([
      200,
      { name: 'first', description: 'more\nlines' },
    ]);
    await expectProblem(await put(owner, path, { name: 'x' }, tag), 412, 'precondition_failed');
    const stale = await send(owner, 'DELETE', path, undefined, { 'If-Match': tag });
    await expectProblem(stale, 412, 'precondition_failed');
    expect((await owner.get<Project>(path)).name).toBe('first');
  });

  test('input that cannot be is refused by name', async () => {
    const { owner } = people;
    const cases: [unknown, string[]][] = [
      [{}, ['name']],
      [{ name: '' }, ['name']],
      [{ name: 'a\nb', colour: 1 }, ['name', 'colour']],
      [{ name: 'a\ud800' }, ['name']],
      [{ name: 'x', description: 'a\0b' }, ['description']],
      [{ name: 'x', acl: { owners: [] } }, ['acl.owners']],
      [{ name: 'x', acl: { writers: ['writer'] } }, ['acl.writers.0']],
      [{ name: 'x', acl: { writers: named('nobody', 'writer') } }, ['acl.writers.0.user']],
      [{ name: 'x', acl: { readers: named('a\0b') } }, ['request']],
      [
        { name: 'x', acl: { writers: named('writer'), readers: named('reader', 'writer') } },
        ['acl.readers.1.user'],
      ],
      [{ name: 'x', acl: { writers: named('owner') } }, ['acl.writers.0.user']],
      [{ name: 'x', acl: { readers: named('reader', 'reader') } }, ['acl.readers.1.user']],
    ];
    const before = (await owner.get<Page>('/api/projects?limit=1000')).items.length;
    for (const [body, fields] of cases) {
      const answer = await send(owner, 'POST', '/api/projects', body);
      expect([body, (await fieldsOf(answer)) ?? []]).toEqual([body, fields]);
    }
    expect((await owner.get<Page>('/api/projects?limit=1000')).items).toHaveLength(before);
  });

  test('the access list decides who sees, writes and rules', async () => {
    const { owner, writer, reader, stranger } = people;
    const pid = await makeProject(people);
    const mid = await makeModel(people, pid);
    const path = `/api/projects/${pid}`;
    const model = `/api/models/${mid}`;
    const server = { fetch: (to: string, init?: RequestInit) => stack.api(to, init) };
    for (const outsider of [stranger, server]) {
      const json = { headers: { 'Content-Type': 'application/json' }, body: '{"name":"x"}' };
      for (const [to, init] of [
        [path, {}],
        [path, { method: 'PUT', ...json }],
        [path, { method: 'DELETE' }],
        [`${path}/models`, {}],
        [`${path}/models`, { method: 'POST', ...json }],
        [`${path}/cache`, {}],
        [`${path}/cache/key`, {}],
        [model, {}],
        [model, { method: 'PUT', ...json }],
        [model, { method: 'DELETE' }],
      ] as const)
        await expectProblem(await outsider.fetch(to, init), 404, 'not_found');
    }
    for (const [client, role] of [
      [owner, 'administrator'],
      [writer, 'writer'],
      [reader, 'reader'],
    ] as const) {
      const { role: found, acl } = await client.get<Project>(path);
      expect([found, acl]).toEqual([
        role,
        { administrators: named('owner'), writers: named('writer'), readers: named('reader') },
      ]);
      const { items } = await client.get<Page>('/api/projects?limit=1000');
      expect(items.map(item => item.id)).toContain(pid);
    }
    const name = { name: 'renamed' };
    const models = `${path}/models`;
    const newModel = { name: 'x', 'model-type': 'y' };
    await expectProblem(await put(reader, path, name), 403, 'forbidden');
    await expectProblem(await send(reader, 'POST', models, newModel), 403, 'forbidden');
    await expectProblem(await put(reader, model, name), 403, 'forbidden');
    await expectProblem(await send(reader, 'DELETE', model), 403, 'forbidden');
    expect((await put(writer, path, name)).status).toBe(200);
    expect((await put(writer, model, name)).status).toBe(200);
    for (const acl of [{}, { readers: [] }])
      await expectProblem(await put(writer, path, { ...name, acl }), 403, 'forbidden');
    const refused = await expectProblem(await send(writer, 'DELETE', path), 403, 'forbidden');
    expect(refused.detail).toContain('a writer of this project, and this needs an administrator.');
    await expectProblem(await send(reader, 'DELETE', path), 403, 'forbidden');
  });

  test('lists of the access list that are not given stay; one administrator always does', async () => {
    const { owner, stranger } = people;
    const pid = await makeProject(people);
    const path = `/api/projects/${pid}`;
    const acl = async (given: Partial<Acl>) => put(owner, path, { acl: given });
    expect(await fieldsOf(await acl({ administrators: [] }))).toEqual(['acl.administrators']);
    expect(await fieldsOf(await acl({ readers: named('writer') }))).toEqual(['acl.readers.0.user']);
    expect(await fieldsOf(await acl({ readers: named('gone') }))).toEqual(['acl.readers.0.user']);
    expect((await acl({ readers: named('stranger') })).status).toBe(200);
    expect((await owner.get<Project>(path)).acl).toEqual({
      administrators: named('owner'),
      writers: named('writer'),
      readers: named('stranger'),
    });
    expect((await stranger.get<Project>(path)).role).toBe('reader');
    await expectProblem(await people.reader.fetch(path), 404, 'not_found');
    const handed = { administrators: named('writer'), writers: named('owner') };
    const answer = await acl(handed);
    expect([answer.status, ((await answer.json()) as Project).role]).toEqual([200, 'writer']);
    await expectProblem(await send(owner, 'DELETE', path), 403, 'forbidden');
    expect((await send(people.writer, 'DELETE', path)).status).toBe(204);
  });

  test('the answer to a change of the access list tells the role that is left, if any', async () => {
    const pid = await makeProject(people);
    const path = `/api/projects/${pid}`;
    const answer = await put(people.owner, path, {
      acl: { administrators: named('writer'), writers: [] },
    });
    expect([answer.status, ((await answer.json()) as { role: unknown }).role]).toEqual([200, null]);
    await expectProblem(await people.owner.fetch(path), 404, 'not_found');
  });

  test('of concurrent changes with one tag one wins, whoever sends them', async () => {
    const pid = await makeProject(people);
    const mid = await makeModel(people, pid);
    for (const path of [`/api/projects/${pid}`, `/api/models/${mid}`]) {
      const tag = await tagOf(people.owner, path);
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, i) =>
          put(i % 2 ? people.owner : people.writer, path, { name: `change ${i}` }, tag),
        ),
      );
      const statuses = answers.map(answer => answer.status).sort();
      expect(statuses).toEqual([200, ...Array.from({ length: 9 }, () => 412)]);
      const winner = answers.find(answer => answer.status === 200);
      const won = (await winner?.json()) as Project | undefined;
      expect((await people.owner.get<Project>(path)).name).toBe(won?.name);
    }
  });

  test('models belong to their project, and come in pages', async () => {
    const { owner, reader } = people;
    const pid = await makeProject(people);
    const body = { name: 'm', 'model-type': 'tide', description: 'd', marking: 'secret' };
    const made = await send(owner, 'POST', `/projects/${pid}/models`, body);
    const { id: mid } = (await made.json()) as { id: string };
    expect([made.status, made.headers.get('Location')]).toEqual([201, `/api/models/${mid}`]);
    const record = { id: mid, project: pid, ...body };
    expect(await reader.get(`/models/${mid}`)).toEqual({
      ...record,
      created: expect.stringMatching(/Z$/),
      updated: expect.stringMatching(/Z$/),
      artifacts: [],
      next: null,
      parses: [],
    });
    const more = [mid];
    for (let i = 0; i < 3; i++) more.push(await makeModel(people, pid));
    const path = `/api/projects/${pid}/models`;
    const first = await reader.get<Page>(`${path}?limit=3`);
    const rest = await reader.get<Page>(`${path}?limit=3&after=${first.next}`);
    expect([...first.items, ...rest.items].map(item => item.id)).toEqual(more);
    expect([first.items.length, rest.next]).toEqual([3, null]);
    expect(first.items[0]).toMatchObject(record);
    expect(await fieldsOf(await send(owner, 'POST', path, { name: 'x' }))).toEqual(['model-type']);
    expect(await fieldsOf(await put(owner, `/api/models/${mid}`, { marking: 1 }))).toEqual([
      'marking',
    ]);
    for (const at of [`/api/projects/${UNKNOWN}`, '/api/projects/x', `/api/models/${UNKNOWN}`])
      await expectProblem(await owner.fetch(at), 404, 'not_found');
  });

  test('the artifacts of a model come in pages, and its tag follows them', async () => {
    const { owner } = people;
    const mid = await makeModel(people, await makeProject(people));
    const path = `/api/models/${mid}`;
    const empty = await tagOf(owner, path);
    const names = ['a', 'b/c', 'd', 'é'];
    for (const name of names)
      await put(owner, `${path}/parameters/${encodeURIComponent(name)}`, { value: name });
    const full = await tagOf(owner, path);
    expect(full).not.toBe(empty);
    const seen: string[] = [];
    let after = '';
    for (;;) {
      const { artifacts, next } = await owner.get<{
        artifacts: { aid: string }[];
        next: string | null;
      }>(`${path}?limit=3${after}`);
      seen.push(...artifacts.map(({ aid }) => aid));
      if (next === null) break;
      after = `&after=${encodeURIComponent(next)}`;
    }
    expect(seen.sort()).toEqual(names);
    await owner.delete(`${path}/parameters/a`);
    expect(await tagOf(owner, path)).not.toBe(full);
  });

  test('a deleted project is gone at once with all below it, and so is a deleted model', async () => {
    const { owner, writer } = people;
    for (const prefix of ['', '/api']) {
      const pid = await makeProject(people);
      const [mid, other] = [await makeModel(people, pid), await makeModel(people, pid)];
      const parameter = `/api/models/${mid}/parameters/p`;
      await put(owner, parameter, { value: 1 });
      await put(owner, `/api/models/${other}/parameters/p`, { value: 2 });
      const { id: bid } = await owner.post<{ id: string }>(`/api/projects/${pid}/bookmarks`, {});

      expect((await send(writer, 'DELETE', `${prefix}/models/${mid}`)).status).toBe(204);
      for (const path of [`/api/models/${mid}`, parameter])
        await expectProblem(await owner.fetch(path), 404, 'not_found');
      await expectProblem(await put(writer, parameter, { value: 1 }), 404, 'not_found');
      const { items } = await owner.get<Page>(`/api/projects/${pid}/models`);
      expect(items.map(item => item.id)).toEqual([other]);

      const gone = await send(owner, 'DELETE', `${prefix}/projects/${pid}`);
      expect([gone.status, gone.statusText, await gone.text()]).toEqual([
        204,
        'Project deleted.',
        '',
      ]);
      const below = [
        `/api/projects/${pid}`,
        `/api/projects/${pid}/models`,
        `/api/projects/${pid}/cache`,
        `/api/models/${other}`,
        `/api/models/${other}/parameters/p`,
        `/api/bookmarks/${bid}`,
      ];
      for (const path of below) await expectProblem(await owner.fetch(path), 404, 'not_found');
      await expectProblem(await send(owner, 'DELETE', below[0] ?? ''), 404, 'not_found');
      const list = await owner.get<Page>('/api/projects?limit=1000');
      expect(list.items.map(item => item.id)).not.toContain(pid);
    }
  });

  test('what is written while a project is deleted is written before or not at all', async () => {
    const { owner, writer } = people;
    const pid = await makeProject(people);
    const mid = await makeModel(people, pid);
    const writes = Array.from({ length: 20 }, (_, i) =>
      put(writer, `/api/models/${mid}/parameters/p${i}`, { value: i }),
    );
    const deletion = send(owner, 'DELETE', `/api/projects/${pid}`);
    for (const answer of await Promise.all(writes)) expect([200, 404]).toContain(answer.status);
    expect((await deletion).status).toBe(204);
    await expectProblem(await owner.fetch(`/api/models/${mid}`), 404, 'not_found');
  });

  test('a user who is removed leaves the projects to those who are left', async () => {
    const names = ['leaving', 'heir', 'onlooker', 'bystander'] as const;
    const users = await addUsers(stack, names);
    const { leaving, heir, onlooker } = users;
    const make = async (acl: object) =>
      (await leaving.post<Project>('/api/projects', { name: 'left', acl })).id;
    const inherited = await make({ writers: named('heir'), readers: named('onlooker') });
    const shared = await make({ administrators: named('leaving', 'heir') });
    const read = await make({ readers: named('onlooker') });
    const alone = await make({});
    const mid = (
      await leaving.post<Project>(`/api/projects/${alone}/models`, { name: 'm', 'model-type': 't' })
    ).id;
    const tag = await tagOf(heir, `/api/projects/${inherited}`);
    expect((await removeUser('leaving')).status).toBe(204);

    expect(await heir.get(`/api/projects/${inherited}`)).toMatchObject({
      role: 'administrator',
      acl: { administrators: named('heir'), writers: [], readers: named('onlooker') },
    });
    expect(await tagOf(heir, `/api/projects/${inherited}`)).not.toBe(tag);
    expect((await heir.get<Project>(`/api/projects/${shared}`)).acl).toEqual({
      administrators: named('heir'),
      writers: [],
      readers: [],
    });
    expect((await onlooker.get<Project>(`/api/projects/${read}`)).role).toBe('reader');

    const { leaving: again } = await addUsers(stack, ['leaving']);
    expect(await again.get('/api/projects')).toEqual({ items: [], next: null });
    for (const path of [alone, inherited, read].map(pid => `/api/projects/${pid}`))
      await expectProblem(await again.fetch(path), 404, 'not_found');
    await expectProblem(await again.fetch(`/api/models/${mid}`), 404, 'not_found');

    expect((await removeUser('onlooker')).status).toBe(204);
    const { onlooker: next } = await addUsers(stack, ['onlooker']);
    await expectProblem(await next.fetch(`/api/projects/${read}`), 404, 'not_found');
  });

  test('the projects that a removed user alone was in are counted, and may be given to another', async () => {
    const admin = connectClient(stack);
    const names = ['sole', 'guest', 'taker', 'gone'] as const;
    const { sole, guest, taker } = await addUsers(stack, names);
    const make = async (acl: object) =>
      (await sole.post<Project>('/api/projects', { name: 'kept', acl })).id;
    const alone = await make({});
    const read = await make({ readers: [...named('guest'), ...named('taker')] });
    await sole.delete(`/api/projects/${await make({})}`);
    // The last administrator has left these to their readers, one of them to the user alone.
    const { former } = await addUsers(stack, ['former']);
    const onlyRead = async (...readers: string[]) => {
      const body = { name: 'read only', acl: { readers: readers.flatMap(name => named(name)) } };
      return (await former.post<Project>('/api/projects', body)).id;
    };
    const foreign = await onlyRead('sole', 'guest');
    const last = await onlyRead('sole');
    expect((await removeUser('former')).status).toBe(204);
    const count = async (name: string) =>
      (await admin.get<{ soleProjects: number }>(`/api/users/${name}`)).soleProjects;
    expect([await count('sole'), await count('guest')]).toEqual([3, 0]);
    await admin.fetch('/api/users/gone', { method: 'PUT', body: '{"disabled": true}' });
    const removeFor = (heir: string) =>
      admin.fetch(`/api/users/sole?projectsTo=${heir}`, { method: 'DELETE' });
    for (const heir of ['nobody', 'gone', 'sole', '']) {
      const problem = await expectProblem(await removeFor(heir), 400, 'invalid_input');
      expect(problem.fields?.map(({ field }) => field)).toEqual(['projectsTo']);
    }
    expect((await removeFor('taker')).status).toBe(204);
    expect(await taker.get(`/api/projects/${alone}`)).toMatchObject({
      role: 'administrator',
      acl: { administrators: named('taker'), writers: [], readers: [] },
    });
    // Its readers could govern it no more than nobody.
    expect(await taker.get(`/api/projects/${read}`)).toMatchObject({
      role: 'administrator',
      acl: { administrators: named('taker'), writers: [], readers: named('guest') },
    });
    expect((await guest.get<Project>(`/api/projects/${read}`)).role).toBe('reader');
    expect((await taker.get<Project>(`/api/projects/${last}`)).role).toBe('administrator');
    await expectProblem(await taker.fetch(`/api/projects/${foreign}`), 404, 'not_found');
    expect((await guest.get<Project>(`/api/projects/${foreign}`)).acl.administrators).toEqual([]);
    const told = async (action: string) => {
      const path = `/api/audit?action=${action}&limit=1000`;
      const { items } = await admin.get<{ items: { target: string }[] }>(path);
      return items.map(({ target }) => target);
    };
    expect(await told('project.acl')).toContain(alone);
    expect(await told('project.delete')).not.toContain(alone);
  });

  test('who may not log in gets no project of a removed user while somebody else can', async () => {
    const admin = connectClient(stack);
    const names = ['ruler', 'off', 'hand', 'next', 'plain'] as const;
    const { ruler, off, hand, next, plain } = await addUsers(stack, names);
    const make = async (acl: object, by = ruler) =>
      (await by.post<Project>('/api/projects', { name: 'kept', acl })).id;
    const written = await make({ writers: named('off') });
    const ruled = await make({ administrators: named('ruler', 'off') });
    const handed = await make({ administrators: named('ruler', 'off'), writers: named('hand') });
    const foreign = await make({ writers: named('hand'), readers: named('ruler') }, off);
    const waiting = await make({ writers: named('off') }, plain);
    const disable = (disabled: boolean) => put(admin, '/api/users/off', { disabled });
    expect((await disable(true)).status).toBe(200);
    const { soleProjects } = await admin.get<{ soleProjects: number }>('/api/users/ruler');
    expect(soleProjects).toBe(2);
    const removed = await admin.fetch('/api/users/ruler?projectsTo=next', { method: 'DELETE' });
    expect(removed.status).toBe(204);
    const aclOf = async (who: Client, pid: string) =>
      (await who.get<Project>(`/api/projects/${pid}`)).acl;
    expect(await aclOf(next, written)).toEqual({
      administrators: named('next'),
      writers: named('off'),
      readers: [],
    });
    expect((await aclOf(next, ruled)).administrators).toEqual(named('next', 'off'));
    expect((await aclOf(hand, handed)).administrators).toEqual(named('hand', 'off'));
    // The removed user only read this one: it is still that of its disabled administrator.
    expect((await hand.get<Project>(`/api/projects/${foreign}`)).role).toBe('writer');
    expect((await removeUser('plain')).status).toBe(204);
    expect((await disable(false)).status).toBe(200);
    expect((await off.get<Project>(`/api/projects/${waiting}`)).role).toBe('administrator');
  });

  test('users who are removed while they are named in access lists leave no name behind', async () => {
    const pids = await Promise.all(
      Array.from({ length: 4 }, (_, i) => makeProject(people, `racing ${i}`)),
    );
    const names = Array.from({ length: 4 }, (_, i) => `racer${i}`);
    await addUsers(stack, names);
    const answers = await Promise.all([
      ...pids.flatMap(pid =>
        names.map(name =>
          put(people.owner, `/api/projects/${pid}`, { acl: { readers: named(name) } }),
        ),
      ),
      ...names.map(removeUser),
    ]);
    for (const { status } of answers) expect([200, 204, 400]).toContain(status);
    await waitFor(
      async () => {
        const acls = await Promise.all(
          pids.map(pid => people.owner.get<Project>(`/api/projects/${pid}`)),
        );
        return acls.every(({ acl }) => acl.readers.every(({ user }) => !names.includes(user)));
      },
      { what: 'no removed user to be a reader' },
    );
  });
});
