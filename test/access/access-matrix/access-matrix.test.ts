import { afterAll, beforeAll, expect, test } from 'vitest';
import { missingPrograms } from '../../harness/skip.ts';
import { describeStack } from '../../harness/stacks/forms.ts';
import { ask, forNothing, prepare } from './ask.ts';
import { ACTORS, type Actor, type Line, readExpected } from './expected.ts';
import { logIn } from './log-in.ts';
import { REQUESTS } from './requests.ts';
import { makeToken, makeWorld, type World } from './world.ts';

const LINES = readExpected();
/** Those whose browsers are tried, too, and what they ask for. */
const BROWSERS = ['stranger', 'reader', 'writer', 'administrator', 'owner', 'server'] as const;
/** What no token changes, whoever made it. */
const BEYOND_TOKENS = /^\/(hosts|users|webhooks|workers)\b/;
const BROWSED = [
  'GET /users',
  'GET /projects/{pid}',
  'PUT /projects/{pid}',
  'GET /models/{mid}/parameters/{aid}',
  'DELETE /models/{mid}',
  'POST /projects/{pid}/bookmarks',
  'GET /remotes/{sid}',
  'POST /remotes/launch',
  'PUT /uploads/{uid}/files/{fid}/parts/{part}',
  'GET /jobs/{id}/output',
];

describeStack(missingPrograms('sshd', 'ffmpeg'), 'who may do what', form => {
  let world: World;
  beforeAll(async () => {
    world = await makeWorld(form);
  });
  afterAll(() => world?.stop());

  const make = async (line: Line, actor: Actor) =>
    prepare(world, line, (await REQUESTS[line.name]?.(world, actor)) ?? {});
  const as = (actor: Actor): Record<string, string> => {
    const Authorization = world.authorization[actor];
    return Authorization === undefined ? {} : { Authorization };
  };

  test('every operation has a line, every line an operation', async () => {
    const response = await fetch(`${world.stack.url}/api/openapi.json`);
    const { paths } = (await response.json()) as { paths: Record<string, object> };
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map(method => `${method.toUpperCase()} ${nameOf(path)}`),
    );
    expect(described.length).toBeGreaterThan(60);
    const names = LINES.map(line => line.name);
    expect(new Set(names).size).toBe(names.length);
    expect(Object.keys(REQUESTS).filter(name => !names.includes(name))).toEqual([]);
    expect([...new Set(LINES.map(line => line.operation))].sort()).toEqual(described.sort());
  });

  test.each(LINES.map(line => [line.name, line] as const))('%s', async (_name, line) => {
    const got: Partial<Line['statuses']> = {};
    for (const actor of ACTORS) {
      const request = await make(line, actor);
      const { status, caching, told } = await ask(world, request, as(actor));
      got[actor] = status;
      // A cache that several users share gives it to none but who asked.
      if (line.method === 'GET' && line.statuses.nobody === 401)
        expect(caching ?? '', actor).toMatch(/^(private, no-cache|(no-cache, )?no-store\b.*)$/);
      // What is hidden is told of in the same words as what was never there.
      if (status === 404 && actor !== 'owner')
        expect(told, actor).toBe((await ask(world, forNothing(request), as(actor))).told);
    }
    expect(got).toEqual(line.statuses);
  });

  test('a write token of a server administrator changes no host, user, token, webhook or worker', async () => {
    const { server } = world.people;
    const { token } = await makeToken(server, 'write');
    const headers = { Authorization: `Bearer ${token}` };
    const writes = LINES.filter(({ method, path }) => method !== 'GET' && BEYOND_TOKENS.test(path));
    expect(writes.length).toBeGreaterThanOrEqual(3);
    for (const line of writes) {
      const { status, told } = await ask(world, await make(line, 'server'), headers);
      expect([line.name, status]).toEqual([line.name, 403]);
      expect(told).toMatch(/^forbidden: Forbidden: a token may not change .*password/s);
    }
    const { paths } = await server.get<{
      paths: Record<string, Record<string, { security?: object[] }>>;
    }>('/api/openapi.json');
    for (const { method, path } of writes)
      expect(paths[`/api${path}`]?.[method.toLowerCase()]?.security).toEqual([
        { basic: [] },
        { cookie: [] },
      ]);
  });

  test.each(BROWSERS)(
    'the browser of %s: the same with a cookie, and no write from elsewhere',
    async actor => {
      const { cookie, end } = await logIn(world, actor);
      for (const name of BROWSED) {
        const line = LINES.find(candidate => candidate.name === name);
        if (!line) throw new Error(`there is no line ${name}`);
        const by = async (headers: Record<string, string>) =>
          (await ask(world, await make(line, actor), { Cookie: cookie, ...headers })).status;
        const reads = line.method === 'GET';
        expect([
          name,
          await by({ Origin: world.stack.url }),
          await by({ Origin: 'https://elsewhere.example' }),
          await by({}),
        ]).toEqual([
          name,
          line.statuses[actor],
          reads ? line.statuses[actor] : 403,
          reads ? line.statuses[actor] : 403,
        ]);
      }
      await end();
      for (const name of BROWSED) {
        const line = LINES.find(candidate => candidate.name === name) as Line;
        const headers = { Cookie: cookie, Origin: world.stack.url };
        expect([name, (await ask(world, await make(line, actor), headers)).status]).toEqual([
          name,
          401,
        ]);
      }
    },
  );
});

/** The documented form has the prefix; these two stand below it alone. */
const nameOf = (path: string) =>
  path === '/api/openapi.json' || path === '/api/docs' ? path : path.replace(/^\/api(?=\/)/, '');
