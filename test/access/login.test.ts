import { hash } from '@node-rs/argon2';
import type postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newSecret } from '../../api/identity/random-secrets.ts';
import { newId } from '../../shared/ids.ts';
import { logIn, sendLogin } from '../harness/browser/browser-login.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { apiUrls, openStackDatabase } from '../harness/databases/database.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const PASSWORD = 'correct horse';
const DAY_MS = 86_400_000;
const LIMIT = 3;

describeStack(undefined, 'logins', form => {
  const { stack, client: admin } = useStack(form, {
    // The tests say where a request came from, as a proxy does.
    env: { TRUST_PROXY: '1', LIMIT_FAILED_LOGINS: String(LIMIT) },
  });
  let database: postgres.Sql;
  let made = 0;

  beforeAll(async () => {
    database = openStackDatabase(stack);
  });
  afterAll(() => database?.end());

  const addUser = async () => {
    const username = `user${++made}`;
    await admin.post('/api/users', { username, password: PASSWORD });
    return { username, password: PASSWORD };
  };
  const whoAmI = (url: string, headers: Record<string, string>) =>
    fetch(`${url}/api/users/-`, { headers });
  const basic = (username: string, password: string) => ({
    Authorization: `Basic ${btoa(`${username}:${password}`)}`,
  });

  test('a login sets both cookies, and they are good for every process', async () => {
    const alice = await addUser();
    const before = Date.now();
    const login = await logIn(stack, alice);
    expect(login.lines).toEqual([
      expect.stringMatching(
        /^serviceauth=[\w-]{43}; Max-Age=\d+; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Lax$/,
      ),
      expect.stringMatching(
        /^servicetimeout=[\d-]{10}T[\d:.]{12}Z; Max-Age=\d+; Path=\/; Expires=[^;]+; SameSite=Lax$/,
      ),
    ]);
    const lasts = Date.parse(login.cookies.get('servicetimeout') ?? '') - before;
    expect(Math.abs(lasts - 43_200_000)).toBeLessThan(60_000);
    for (const url of apiUrls(stack))
      for (const path of ['/api/users/-', '/users/-']) {
        const me = await login.fetch(url + path);
        expect([url, me.status, await me.json()]).toMatchObject([
          url,
          200,
          { username: alice.username, administrator: false },
        ]);
      }
    expect(
      await database`select * from logins where token = ${login.cookies.get('serviceauth') ?? ''}`,
    ).toEqual([]);
  });
  test('JSON or a form, with and without /api; the target is a path here or /', async () => {
    const alice = await addUser();
    const targets: [string | undefined, string][] = [
      ['/models/1?tab=2#x', '/models/1?tab=2#x'],
      [undefined, '/'],
      ['//other.example', '/'],
      ['/\\other.example', '/'],
      ['/\t/other.example', '/'],
      ['https://other.example/', '/'],
    ];
    for (const [target, expected] of targets) {
      const response = await sendLogin(stack.url, { ...alice, target });
      expect([target, response.status, await response.json()]).toEqual([
        target,
        200,
        { success: true, target: expected },
      ]);
      expect(response.headers.get('Cache-Control')).toBe('no-store');
    }
    const form = await fetch(`${stack.url}/login`, {
      method: 'POST',
      body: new URLSearchParams({ ...alice, target: '/a b?ä=ü' }),
    });
    expect([form.status, await form.json()]).toEqual([200, { success: true, target: '/' }]);
    expect(form.headers.getSetCookie()).toHaveLength(2);
  });

  test('a password is the same however its characters are composed, and whole', async () => {
    const { username } = await addUser();
    const change = (password: string) =>
      admin.fetch(`/api/users/${username}`, { method: 'PUT', body: JSON.stringify({ password }) });
    const statuses = async (...passwords: string[]) => {
      const answers = passwords.map(password => sendLogin(stack.url, { username, password }));
      return (await Promise.all(answers)).map(({ status }) => status);
    };
    const [composed, decomposed] = ['p\u00e4sswort', 'pa\u0308sswort'];
    for (const password of [composed, decomposed]) {
      expect((await change(password)).status).toBe(200);
      expect(await statuses(composed, decomposed)).toEqual([200, 200]);
      const utf8 = Buffer.from(`${username}:${decomposed}`).toString('base64');
      expect((await whoAmI(stack.url, { Authorization: `Basic ${utf8}` })).status).toBe(200);
    }
    const { fields } = await expectProblem(
      await change('half \ud83d of one'),
      400,
      'invalid_input',
    );
    expect(fields?.map(({ field }) => field)).toEqual(['password']);
    // As earlier releases stored it.
    const stored = await hash(decomposed);
    await database`update users set password_hash = ${stored} where username = ${username}`;
    expect(await statuses(decomposed, composed)).toEqual([200, 401]);
  });

  test('what is no login is refused by field', async () => {
    const alice = await addUser();
    const bad: [number, string, unknown, string?][] = [
      [400, 'invalid_input', {}],
      [400, 'invalid_input', { username: 'a' }],
      [400, 'invalid_input', { ...alice, extra: 1 }],
      [400, 'invalid_input', { ...alice, target: 1 }],
      [400, 'invalid_input', '{'],
      [400, 'invalid_input', '[]'],
      [400, 'invalid_input', 'username=a', 'application/x-www-form-urlencoded'],
      [400, 'invalid_input', '__proto__=a', 'application/x-www-form-urlencoded'],
      [413, 'payload_too_large', 'a'.repeat(20_000), 'application/x-www-form-urlencoded'],
      [413, 'payload_too_large', JSON.stringify({ ...alice, target: 'a'.repeat(20_000) })],
      [415, 'unsupported_media_type', 'a', 'text/plain'],
    ];
    for (const [status, code, body, type = 'application/json'] of bad)
      await expectProblem(await sendLogin(stack.url, body, { 'Content-Type': type }), status, code);
    // The body of somebody unknown is not unpacked: a few bytes would fill memory.
    for (const type of ['application/json', 'application/x-www-form-urlencoded'])
      for (const encoding of ['gzip', 'br'])
        await expectProblem(
          await sendLogin(stack.url, alice, { 'Content-Type': type, 'Content-Encoding': encoding }),
          415,
          'unsupported_media_type',
        );
    await expectProblem(await fetch(`${stack.url}/api/login`), 405, 'method_not_allowed');
  });

  test('a wrong password and an unknown name are answered alike', async () => {
    const { username } = await addUser();
    const answers = [];
    for (const name of [username, 'nobody', 'no name at all', 'nul\u0000', 'x'.repeat(1_000)]) {
      const response = await sendLogin(stack.url, { username: name, password: 'wrong' });
      const { requestId: _, ...problem } = await expectProblem(response, 401, 'unauthorized');
      answers.push(problem);
      expect(response.headers.getSetCookie()).toEqual([]);
    }
    expect(new Set(answers.map(answer => JSON.stringify(answer))).size).toBe(1);
  });

  test('logging out ends the login everywhere and removes the cookies', async () => {
    const alice = await addUser();
    const [login, other] = [await logIn(stack, alice), await logIn(stack, alice)];
    const [auth = ''] = login.lines;
    const out = await login.fetch('/api/logout', { method: 'DELETE' });
    expect([out.status, await out.text()]).toEqual([204, '']);
    expect(out.headers.getSetCookie().map(line => line.split(';')[0])).toEqual([
      'serviceauth=',
      'servicetimeout=',
    ]);
    for (const line of out.headers.getSetCookie())
      expect(line).toContain('Expires=Thu, 01 Jan 1970');
    for (const url of apiUrls(stack)) {
      const gone = await whoAmI(url, { Cookie: auth.split(';')[0] ?? '' });
      await expectProblem(gone, 401, 'unauthorized');
      expect((await other.fetch(`${url}/api/users/-`)).status).toBe(200);
    }
    await expectProblem(
      await fetch(`${stack.url}/logout`, { method: 'DELETE' }),
      401,
      'unauthorized',
    );
  });

  test('a new login takes the place of the one before in the same browser', async () => {
    const alice = await addUser();
    const first = await logIn(stack, alice);
    const Cookie = `serviceauth=${first.cookies.get('serviceauth')}`;
    expect((await sendLogin(stack.url, alice, { Cookie })).status).toBe(200);
    expect((await whoAmI(stack.url, { Cookie })).status).toBe(401);
  });

  test('use makes a login last longer, at most once a minute and 7 days in all', async () => {
    const alice = await addUser();
    const login = await logIn(stack, alice);
    const end = () => Date.parse(login.cookies.get('servicetimeout') ?? '');
    const age = (what: string) =>
      database.unsafe(`update logins set ${what} where username = '${alice.username}'`);
    const use = async () => (await login.fetch('/api/users/-')).headers.getSetCookie().length;

    const first = end();
    expect(await use()).toBe(0);
    await age("expires = expires - interval '2 minutes'");
    expect(await use()).toBe(2);
    expect(end()).toBeGreaterThanOrEqual(first);
    expect(await use()).toBe(0);

    await age(
      "created = created - interval '6 days 23 hours', expires = now() + interval '5 minutes'",
    );
    expect(await use()).toBe(2);
    expect(Math.abs(end() - Date.now() - DAY_MS / 24)).toBeLessThan(60_000);
    await age("created = now() - interval '8 days', expires = now() + interval '1 second'");
    expect(await use()).toBe(0);
    // The row is there when it expires; upkeep may remove it at any moment from then on.
    expect((await age('expires = now()')).count).toBe(1);
    await expectProblem(await login.fetch('/api/users/-'), 401, 'unauthorized');
  });

  test('a user has a hundred logins at most: the oldest ends', async () => {
    const alice = await addUser();
    const oldest = await logIn(stack, alice);
    await database`
      insert into logins (token, username, user_version, expires)
      select ${alice.username} || n, ${alice.username}, 1, now() + interval '1 hour' from generate_series(1, 99) n`;
    expect((await oldest.fetch('/api/users/-')).status).toBe(200);
    const newest = await logIn(stack, alice);
    expect((await oldest.fetch('/api/users/-')).status).toBe(401);
    expect((await newest.fetch('/api/users/-')).status).toBe(200);
  });

  test('right logins of one user: 429 beyond twenty at once, and no entry of the audit', async () => {
    const alice = await addUser();
    await logIn(stack, alice);
    const all = Array.from({ length: 60 }, () => sendLogin(stack.url, alice));
    const refused = (await Promise.all(all)).filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(30);
    const [answer] = refused as [Response];
    const { hint } = await expectProblem(answer, 429, 'too_many_requests');
    const wait = Number(answer.headers.get('Retry-After'));
    expect([wait >= 1 && wait <= 3, hint]).toEqual([
      true,
      expect.stringContaining(`Wait ${wait} s`),
    ]);
    const entries = await database`
      select action from audit_pending where username = ${alice.username}
      union all select action from audit_entries where username = ${alice.username}`;
    expect(entries.length).toBe(1 + 60 - refused.length);
    expect((await sendLogin(stack.url, await addUser())).status).toBe(200);
  });

  test('a changed password ends every login; so does the removal of the user, for later users too', async () => {
    const alice = await addUser();
    const logins = [await logIn(stack, alice), await logIn(stack, alice)];
    const change = await logins[0]?.fetch(`/api/users/${alice.username}`, {
      method: 'PUT',
      body: JSON.stringify({ password: 'another password', current: PASSWORD }),
    });
    expect(change?.status).toBe(200);
    for (const login of logins) expect((await login.fetch('/api/users/-')).status).toBe(401);

    const bob = await addUser();
    const login = await logIn(stack, bob);
    const asBob = basic(bob.username, bob.password);
    for (const url of apiUrls(stack)) expect((await whoAmI(url, asBob)).status).toBe(200);
    await admin.delete(`/api/users/${bob.username}`);
    expect((await login.fetch('/api/users/-')).status).toBe(401);
    await admin.post('/api/users', { username: bob.username, password: 'of another Bob' });
    for (const url of apiUrls(stack)) {
      expect((await login.fetch(`${url}/api/users/-`)).status).toBe(401);
      expect((await whoAmI(url, asBob)).status).toBe(401);
    }
  });

  test('a page of another origin can neither write by cookie, nor log anybody in', async () => {
    const alice = await addUser();
    const login = await logIn(stack, alice);
    const { origin, port } = new URL(stack.url);
    const event = (headers: Record<string, string>) =>
      login.fetch('/api/logout/none', { method: 'POST', headers });
    for (const Origin of [
      'http://other.example',
      'null',
      `https://127.0.0.1:${port}`,
      'http://127.0.0.1',
    ])
      await expectProblem(await event({ Origin }), 403, 'forbidden');
    for (const Origin of [origin, `http://localhost:${port}`])
      await expectProblem(await event({ Origin }), 404, 'not_found');

    const Cookie = `serviceauth=${login.cookies.get('serviceauth')}`;
    const send = (path: string, method: string, headers: Record<string, string>) =>
      fetch(`${stack.url}${path}`, { method, headers: { Cookie, ...headers } });
    const refused = await send('/api/logout', 'DELETE', {});
    expect((await expectProblem(refused, 403, 'forbidden')).hint).toContain('PUBLIC_URL');
    await expectProblem(await send('/nothing?cache=project', 'GET', {}), 403, 'forbidden');
    const ours: Record<string, string>[] = [
      { Referer: `${origin}/page` },
      { 'Sec-Fetch-Site': 'same-origin' },
    ];
    for (const headers of ours)
      await expectProblem(await send('/nothing?cache=project', 'GET', headers), 404, 'not_found');
    expect((await whoAmI(stack.url, { Cookie, Origin: 'http://other.example' })).status).toBe(200);

    // A password that the browser keeps is sent along as well.
    const kept = (headers: Record<string, string>) =>
      admin.fetch('/api/logout/none', { method: 'POST', headers });
    await expectProblem(await kept({ 'Sec-Fetch-Site': 'cross-site' }), 403, 'forbidden');
    await expectProblem(await kept({ Origin: 'http://other.example' }), 403, 'forbidden');
    await expectProblem(await kept({}), 404, 'not_found');

    const csrf = await sendLogin(stack.url, alice, { Origin: 'http://other.example' });
    await expectProblem(csrf, 403, 'forbidden');
    expect(csrf.headers.getSetCookie()).toEqual([]);
    const preflight = await fetch(`${stack.url}/api/login`, {
      method: 'OPTIONS',
      headers: { Origin: 'http://other.example', 'Access-Control-Request-Method': 'POST' },
    });
    for (const response of [csrf, refused, preflight])
      expect(
        [...response.headers.keys()].filter(name => name.startsWith('access-control')),
      ).toEqual([]);
    expect((await send('/api/logout', 'DELETE', { 'Sec-Fetch-Site': 'same-origin' })).status).toBe(
      204,
    );
  });

  test('an Authorization header alone counts, and a good cookie beside bad ones', async () => {
    const alice = await addUser();
    const login = await logIn(stack, alice);
    const Cookie = `serviceauth=${login.cookies.get('serviceauth')}`;
    for (const Authorization of [
      'Basic !!!',
      'Bearer wdl_x',
      'Digest a',
      '',
      basic('nobody', 'x').Authorization,
    ])
      await expectProblem(await whoAmI(stack.url, { Cookie, Authorization }), 401, 'unauthorized');
    const both = await whoAmI(stack.url, { Cookie, ...basic(stack.username, stack.password) });
    expect(await both.json()).toMatchObject({ username: stack.username });
    expect(both.headers.getSetCookie()).toEqual([]);
    for (const jar of [
      `a=b; ${Cookie}`,
      `serviceauth; serviceauth=x; ${Cookie};`,
      `${Cookie}; serviceauth=x`,
      `${Cookie}; ${Cookie}`,
    ])
      expect([jar, (await whoAmI(stack.url, { Cookie: jar })).status]).toEqual([jar, 200]);
    for (const jar of ['', 'serviceauth=', `x${Cookie}`, `serviceauth=${'x'.repeat(43)}`])
      expect([jar, (await whoAmI(stack.url, { Cookie: jar })).status]).toEqual([jar, 401]);
  });

  const secretOf = ({ cookies }: { cookies: Map<string, string> }) =>
    `serviceauth=${cookies.get('serviceauth')}`;

  test("of two users' logins none counts, and the browser is told to forget both", async () => {
    const sent = [await logIn(stack, await addUser()), await logIn(stack, await addUser())].map(
      secretOf,
    );
    for (const Cookie of [sent.join('; '), sent.reverse().join('; ')]) {
      const answer = await whoAmI(stack.url, { Cookie });
      const { detail } = await expectProblem(answer, 401, 'unauthorized');
      expect(detail).toContain('of several users');
      const paths = answer.headers
        .getSetCookie()
        .map(line => /^serviceauth=; Path=([^;]+); Expires=Thu, 01 Jan 1970/.exec(line)?.[1]);
      expect(paths).toEqual(expect.arrayContaining(['/', '/api', '/api/', '/api/users']));
    }
    for (const Cookie of sent) expect((await whoAmI(stack.url, { Cookie })).status).toBe(200);
    const [first, second] = sent;
    for (const path of ['/api/a;b/c', '/api/%zz/', '/api/a\'b"c']) {
      const answer = await fetch(stack.url + path, { headers: { Cookie: `${first}; ${second}` } });
      expect([path, answer.status < 500]).toEqual([path, true]);
    }
    const many = Array.from({ length: 5 }, () => `serviceauth=${newSecret()}`);
    const Cookie = [...many, sent[0]].join('; ');
    await expectProblem(await whoAmI(stack.url, { Cookie }), 401, 'unauthorized');
  });

  test('beside a login cookies of other services do not count, nor do older logins', async () => {
    const user = await addUser();
    const [older, newer] = [await logIn(stack, user), await logIn(stack, user)].map(secretOf);
    const foreign = `serviceauth=${newSecret()}`;
    for (const sent of [
      [foreign, newer],
      [newer, foreign],
      [older, newer],
    ]) {
      const answer = await whoAmI(stack.url, { Cookie: sent.join('; ') });
      expect(await answer.json()).toMatchObject({ username: user.username });
    }
  });

  test('a logout ends all logins whose cookies it brings', async () => {
    const user = await addUser();
    const sent = [await logIn(stack, user), await logIn(stack, user)].map(secretOf);
    const headers = { Cookie: sent.join('; '), Origin: stack.url };
    const out = await fetch(`${stack.url}/api/logout`, { method: 'DELETE', headers });
    expect(out.status).toBe(204);
    for (const Cookie of sent) expect((await whoAmI(stack.url, { Cookie })).status).toBe(401);
  });

  test('a header that begins with an address is not the password of that address', async () => {
    const { username } = await addUser();
    const [own, other] = ['203.0.113.5', '203.0.113.6'];
    const { Authorization } = basic(username, PASSWORD);
    const ask = (address: string, header: string) =>
      whoAmI(stack.url, { 'X-Forwarded-For': address, Authorization: header });
    expect((await ask(own, Authorization)).status).toBe(200);
    for (const header of [`${own} ${Authorization}`, JSON.stringify([own, Authorization])])
      await expectProblem(await ask(other, header), 401, 'unauthorized');
  });

  /** A job that waits for ever, which the test ends. */
  const addWaiting = async (owner: string) => {
    const id = newId();
    await database`insert into jobs (id, kind, queue, owner, payload, not_before)
      values (${id}, 'command', 'remote', ${owner}, '{}', 'infinity')`;
    const end = () =>
      database`update jobs set state = 'cancelled', finished = now() where id = ${id}`;
    return { events: `${stack.url}/api/jobs/${id}/events`, end };
  };

  test('a stream of events ends with the login that opened it', async () => {
    const alice = await addUser();
    const login = await logIn(stack, alice);
    const job = await addWaiting(alice.username);
    // After seven days no use extends it.
    await database`update logins set created = now() - interval '7 days - 10 s', expires = now() + interval '10 s'
      where username = ${alice.username}`;
    const events = await login.fetch(job.events);
    expect(events.status).toBe(200);
    await expect(events.text()).resolves.toMatch(/^event: /m);
    expect((await login.fetch(job.events)).status).toBe(401);
    await job.end();
  });

  test('a stream of events ends with the login that somebody else has replaced', async () => {
    const [alice, bob] = [await addUser(), await addUser()];
    const login = await logIn(stack, alice);
    const job = await addWaiting(alice.username);
    const events = await login.fetch(job.events);
    const read = events.text().catch(() => 'cut');
    const Cookie = `serviceauth=${login.cookies.get('serviceauth')}`;
    expect((await sendLogin(stack.url, bob, { Cookie })).status).toBe(200);
    await read;
    expect((await login.fetch(job.events)).status).toBe(401);
    await job.end();
  });

  test('a stream of events ends with the login that somebody with other credentials ends', async () => {
    const alice = await addUser();
    const login = await logIn(stack, alice);
    const job = await addWaiting(alice.username);
    const events = await login.fetch(job.events);
    const read = events.text().catch(() => 'cut');
    const headers = { Cookie: `serviceauth=${login.cookies.get('serviceauth')}` };
    expect((await admin.fetch('/api/logout', { method: 'DELETE', headers })).status).toBe(204);
    await read;
    await job.end();
  });

  test('failed logins lock the account from that address alone, in every process', async () => {
    const alice = await addUser();
    const urls = apiUrls(stack);
    const from = (address: string) => ({ 'X-Forwarded-For': address });
    // However they come and whatever process takes them, at the same time too.
    const tries = Array.from({ length: LIMIT + 4 }, (_, n) => {
      const url = urls[n % urls.length] ?? '';
      const wrong = `wrong ${n}`;
      return n % 2
        ? whoAmI(url, { ...from('192.0.2.1'), ...basic(alice.username, wrong) })
        : sendLogin(url, { ...alice, password: wrong }, from('192.0.2.1'));
    });
    const statuses = (await Promise.all(tries)).map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array(LIMIT).fill(401), ...Array(4).fill(429)]);
    for (const url of urls) {
      const locked = await sendLogin(url, alice, from('192.0.2.1'));
      const problem = await expectProblem(locked, 429, 'too_many_requests');
      expect(problem.hint).toContain('15 minutes');
      const wait = Number(locked.headers.get('Retry-After'));
      expect(wait).toBeGreaterThan(800);
      expect(wait).toBeLessThanOrEqual(900);
      expect(
        (await whoAmI(url, { ...from('192.0.2.1'), ...basic(stack.username, stack.password) }))
          .status,
      ).toBe(200);
    }
    expect((await sendLogin(stack.url, alice, from('192.0.2.2'))).status).toBe(200);

    await database`update failed_logins set began = began - interval '15 minutes'`;
    // A process remembers for a second that it saw a lock.
    await waitFor(
      async () => (await sendLogin(stack.url, alice, from('192.0.2.1'))).status === 200,
      { what: 'the lock to end' },
    );
  });

  test('a remembered password is good whatever failed, and a success forgives', async () => {
    const alice = await addUser();
    const address = { 'X-Forwarded-For': '2001:db8:1:2::1' };
    const neighbour = { 'X-Forwarded-For': '2001:db8:1:2:ffff::1' };
    const wrong = () =>
      whoAmI(stack.url, { ...neighbour, ...basic(alice.username, `wrong ${Math.random()}`) });
    for (let round = 0; round < 2; round++) {
      for (let n = 1; n < LIMIT; n++) expect((await wrong()).status).toBe(401);
      // A password that was never verified here before, so that it counts.
      const password = `${PASSWORD} ${round}`;
      await admin.fetch(`/api/users/${alice.username}`, {
        method: 'PUT',
        body: JSON.stringify({ password }),
      });
      alice.password = password;
      expect((await sendLogin(stack.url, alice, address)).status).toBe(200);
    }
    for (let n = 0; n < LIMIT; n++) expect((await wrong()).status).toBe(401);
    expect((await wrong()).status).toBe(429);
    expect(
      (await whoAmI(stack.url, { ...address, ...basic(alice.username, alice.password) })).status,
    ).toBe(200);
  });

  test('many requests at once with one new password are one try', async () => {
    const alice = await addUser();
    const headers = { 'X-Forwarded-For': '198.51.100.9', ...basic(alice.username, PASSWORD) };
    const answers = await Promise.all(
      Array.from({ length: 10 * LIMIT }, () => whoAmI(stack.url, headers)),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  });

  test('an address that tries many names is stopped, and adds no rows any more', async () => {
    const from = { 'X-Forwarded-For': '203.0.113.5' };
    const attempt = (n: number) =>
      sendLogin(stack.url, { username: `guess${n}`, password: 'wrong' }, from);
    const most = 10 * LIMIT;
    for (let n = 0; n < most; n++) expect([n, (await attempt(n)).status]).toEqual([n, 401]);
    for (let n = most; n < most + 3; n++)
      await expectProblem(await attempt(n), 429, 'too_many_requests');
    const rows = await database`select failures from failed_logins where key like '203.0.113.5%'`;
    expect(rows).toHaveLength(most + 1);
    const alice = await addUser();
    await expectProblem(await sendLogin(stack.url, alice, from), 429, 'too_many_requests');
  });

  test('upkeep removes what has ended', async () => {
    const ended = "now() - interval '1 day'";
    await database.unsafe(`
      insert into logins (token, username, user_version, expires) values ('old', 'admin', 1, ${ended});
      insert into tokens (id, hash, username, name, scope, expires) values ('old', 'old', 'admin', 'x', 'read', ${ended});
      insert into failed_logins (key, failures, began) values ('old', 1, ${ended})`);
    const current = await logIn(stack, await addUser());
    // A new upkeep worker begins with a round of everything.
    stack.kill('windlass-worker');
    await waitFor(
      async () => {
        const [left] = await database`
          select (select count(*)::int from logins where token = 'old') + (select count(*)::int from tokens where id = 'old')
            + (select count(*)::int from failed_logins where key = 'old') as n`;
        return left?.n === 0;
      },
      { what: 'the old rows to go', timeoutMs: 30_000 },
    );
    expect((await current.fetch('/api/users/-')).status).toBe(200);
  });
});
