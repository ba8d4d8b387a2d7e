import type { JWTPayload } from 'jose';
import type postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { IdentityProvider } from '../../api/identity/oidc/identity-provider.ts';
import { Client } from '../../servers/api-client.ts';
import { findFreePort } from '../../servers/free-port.ts';
import { sendLogin } from '../harness/browser-login.ts';
import { openStackDatabase } from '../harness/database.ts';
import { describeStack } from '../harness/forms.ts';
import { AUDIENCE, CLIENT, startOidcProvider } from '../harness/oidc-provider.ts';
import { expectProblem } from '../harness/problem.ts';
import { RedirectBrowser } from '../harness/redirect-browser.ts';
import { connectClient } from '../harness/remote.ts';
import { useStarted } from '../harness/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** PUBLIC_URL, behind a proxy that strips the path. */
const SITE = 'https://windlass.example/science';
const CALLBACK = `${SITE}/api/login/oidc/callback`;
const ME = '/api/users/-';
const PASSWORD = 'correct horse';

describeStack(undefined, 'an identity provider', form => {
  const provider = useStarted(() => startOidcProvider(CALLBACK));
  const stack = useStarted(() =>
    form.start({
      env: {
        PUBLIC_URL: SITE,
        OIDC_ISSUER: provider.issuer,
        OIDC_CLIENT_ID: CLIENT.id,
        OIDC_CLIENT_SECRET: CLIENT.secret,
        OIDC_ADMINISTRATORS: 'groups=operators',
        OIDC_AUDIENCE: AUDIENCE,
        LIMIT_REQUESTS: '0',
      },
    }),
  );
  let admin: Client;
  let database: postgres.Sql;
  let made = 0;
  beforeAll(() => {
    admin = connectClient(stack);
    database = openStackDatabase(stack);
  });
  afterAll(() => database?.end());

  /** Somebody new with an account there; the name there is the subject's, too. */
  function addPerson(claims: Record<string, unknown> = {}): string {
    const subject = `person${++made}`;
    provider.users.set(subject, { preferred_username: subject, ...claims });
    return subject;
  }
  /** A browser that this person sits at. */
  function openBrowser(subject: string): RedirectBrowser {
    const browser = new RedirectBrowser({ url: SITE, at: stack.url });
    browser.setCookie(provider.issuer, `who=${subject}`);
    return browser;
  }
  /** As far as the provider's answer: the callback with its code. */
  const begin = async (browser: RedirectBrowser, target = '/science/page') => {
    const path = `/api/login/oidc?target=${encodeURIComponent(target)}`;
    return (await browser.follow(`${SITE}${path}`, CALLBACK)).url;
  };
  const logIn = async (browser: RedirectBrowser) => browser.get(await begin(browser));
  const cookieOf = (browser: RedirectBrowser) =>
    browser.cookies(`${SITE}/`).get('serviceauth') ?? '';
  /** Sends a request with the login's cookie, as a page of ours does. */
  const send = (browser: RedirectBrowser, path: string, init: RequestInit = {}) =>
    fetch(`${stack.url}${path}`, {
      ...init,
      headers: {
        Cookie: `serviceauth=${cookieOf(browser)}`,
        Origin: new URL(SITE).origin,
        ...(init.body ? { 'Content-Type': 'application/json' } : {}),
      },
    });
  const bearer = (token: string, path = ME, init: RequestInit = {}) =>
    fetch(`${stack.url}${path}`, {
      ...init,
      headers: {
        Authorization: `Bearer ${token}`,
        ...(init.body ? { 'Content-Type': 'application/json' } : {}),
      },
    });
  /** Somebody who has logged in, and their browser. */
  async function enter(claims?: Record<string, unknown>) {
    const subject = addPerson(claims);
    const browser = openBrowser(subject);
    expect((await logIn(browser)).status).toBe(302);
    return { subject, browser };
  }
  const change = (username: string, body: object) =>
    admin.fetch(`/api/users/${username}`, { method: 'PUT', body: JSON.stringify(body) });
  const auditOf = async (user: string) => {
    const path = `/api/audit?user=${user}&limit=1000`;
    const { items } = await admin.get<{ items: { action: string; outcome: string }[] }>(path);
    return items.map(({ action, outcome }) => `${action} ${outcome}`);
  };

  describe('a login', () => {
    test('makes a user, and ends where it was to lead', async () => {
      const subject = addPerson();
      const browser = openBrowser(subject);
      const callback = await begin(browser);
      const underWay = [...browser.cookies(callback).keys()];
      expect(underWay).toEqual([expect.stringMatching(/^serviceoidc_/)]);
      expect([...browser.cookies(`${SITE}/`).keys()]).toEqual([]);
      const back = await browser.get(callback);
      expect([back.status, back.headers.get('Location')]).toEqual([302, '/science/page']);
      const [gone, secret, end] = back.headers.getSetCookie();
      expect(gone).toMatch(
        /^serviceoidc_\w+=; Path=\/science\/api\/login\/oidc\/callback; Expires=Thu, 01 Jan 1970/,
      );
      expect(secret).toMatch(/^serviceauth=.*; Path=\/science; .*HttpOnly; Secure; SameSite=Lax$/);
      expect(end).toMatch(/^servicetimeout=.*; Path=\/science; .*Secure; SameSite=Lax$/);
      expect(await (await send(browser, ME)).json()).toMatchObject({
        username: subject,
        administrator: false,
      });
      expect(await auditOf(subject)).toEqual(['user.create ok', 'login ok']);

      // What a path in PUBLIC_URL is for.
      const project = await send(browser, '/api/projects', {
        method: 'POST',
        body: '{"name":"x"}',
      });
      expect(project.headers.get('Location')).toMatch(/^\/science\/api\/projects\/[^/]+$/);
    });

    test('of the same subject is of the same user, whatever the name there has become', async () => {
      const { subject, browser } = await enter();
      provider.users.set(subject, { preferred_username: 'another-name' });
      const before = cookieOf(browser);
      expect((await logIn(browser)).status).toBe(302);
      expect(cookieOf(browser)).not.toBe(before);
      expect(await (await send(browser, ME)).json()).toMatchObject({ username: subject });
      expect((await admin.fetch('/api/users/another-name')).status).toBe(404);
    });

    test('leads nowhere else than to this origin', async () => {
      const browser = openBrowser(addPerson());
      for (const target of ['//other.example', 'https://other.example/', '/\\other.example']) {
        const back = await browser.get(await begin(browser, target));
        expect([target, back.headers.get('Location')]).toEqual([target, '/science/']);
      }
    });

    test('leads to a path of any characters', async () => {
      for (const [target, location] of [
        ['/science/caf\u00e9', '/science/caf%C3%A9'],
        ['/science/\u65e5\u672c?\u{1f40b}=%20', '/science/%E6%97%A5%E6%9C%AC?%F0%9F%90%8B=%20'],
        ['/\u2028/other.example', '/%E2%80%A8/other.example'],
      ] as const) {
        const browser = openBrowser(addPerson());
        const back = await browser.get(await begin(browser, target));
        expect([back.status, back.headers.get('Location')]).toEqual([302, location]);
      }
    });

    test('in one tab does not disturb that in another', async () => {
      const browser = openBrowser(addPerson());
      const [one, other] = [await begin(browser), await begin(browser)];
      expect((await browser.get(one)).status).toBe(302);
      expect((await browser.get(other)).status).toBe(302);
    });

    test('with the name of another user is refused, never joined', async () => {
      const local = `local${++made}`;
      await admin.post('/api/users', { username: local, password: PASSWORD });
      const { subject: first } = await enter();
      for (const preferred_username of [local, first, stack.username]) {
        const browser = openBrowser(addPerson({ preferred_username }));
        const { detail } = await expectProblem(await logIn(browser), 403, 'forbidden');
        expect(detail).toContain(`another user ${preferred_username}`);
        expect(cookieOf(browser)).toBe('');
      }
      expect((await new Client(stack.url, local, PASSWORD).fetch(ME)).status).toBe(200);
      const bound =
        await database`select subject from users where username in ${database([local, first])}`;
      expect(bound.map(({ subject }) => subject).sort()).toEqual([first, null].sort());
    });

    test.each([undefined, '', 7, 'two words', '-', 'x'.repeat(65)])(
      'with the name %j is refused, and the setting named',
      async preferred_username => {
        const answer = await logIn(openBrowser(addPerson({ preferred_username })));
        const { hint } = await expectProblem(answer, 403, 'forbidden');
        expect(hint).toContain('OIDC_USERNAME_CLAIM');
      },
    );
  });

  describe('the callback', () => {
    const expectRefused = async (answer: Response, field: string) => {
      const problem = await expectProblem(answer, 400, 'invalid_input');
      expect(problem.fields?.map(each => each.field)).toEqual([field]);
      expect(problem.hint).toContain('/api/login/oidc');
    };

    test('is for the browser that began', async () => {
      const [mine, other] = [openBrowser(addPerson()), openBrowser(addPerson())];
      const callback = await begin(mine);
      await expectRefused(await other.get(callback), 'state');
      await begin(other);
      await expectRefused(await other.get(callback), 'state');
      const [name = '', value = ''] = [...mine.cookies(callback)][0] ?? [];
      for (const wrong of ['', 'x', `${value.slice(0, -4)}AAAA`]) {
        other.setCookie(callback, `${name}=${wrong}; Path=${new URL(CALLBACK).pathname}`);
        await expectRefused(await other.get(callback), 'state');
      }
      expect((await mine.get(callback)).status).toBe(302);
    });

    test('takes a state once, also where the provider takes its code twice', async () => {
      const { subject, browser } = await enter();
      const callback = await begin(browser);
      const underWay =
        [...browser.cookies(callback)].find(([name]) => /^serviceoidc/.test(name)) ?? [];
      const again = () => {
        browser.setCookie(callback, `${underWay.join('=')}; Path=${new URL(CALLBACK).pathname}`);
        return browser.get(callback);
      };
      const logins = async () =>
        (await auditOf(subject)).filter(entry => entry === 'login ok').length;
      expect((await browser.get(callback)).status).toBe(302);
      await expectRefused(await browser.get(callback), 'state');
      await expectRefused(await again(), 'code');
      expect(await logins()).toBe(2);
      await provider.takeCodesTwice(async () => {
        const next = await begin(browser);
        const copies = await Promise.all([browser.get(next), browser.get(next), browser.get(next)]);
        expect(copies.map(({ status }) => status).sort()).toEqual([302, 400, 400]);
        await expectRefused(copies.find(({ status }) => status === 400) as Response, 'state');
      });
      expect(await logins()).toBe(3);
      const refusals = await database`
        select count(*)::int as n from (
          select action, outcome, username from audit_pending union all
          select action, outcome, username from audit_entries) told
        where action = 'login' and outcome = 'refused' and username is null`;
      expect(refusals[0]?.n).toBeGreaterThan(0);
    });

    test('refuses a code of another login, and what is none', async () => {
      const browser = openBrowser(addPerson());
      const [one, other] = [new URL(await begin(browser)), new URL(await begin(browser))];
      one.searchParams.set('code', other.searchParams.get('code') ?? '');
      await expectRefused(await browser.get(one.href), 'code');
      other.searchParams.set('iss', 'https://other.example');
      await expectProblem(await browser.get(other.href), 403, 'forbidden');
      for (const query of ['', '?state=&code=x', '?state=a&state=b'])
        await expectProblem(await browser.get(`${CALLBACK}${query}`), 400, 'invalid_input');
    });

    const now = () => Math.floor(Date.now() / 1_000);
    const lies: [string, () => JWTPayload, number][] = [
      ['of an hour ago', () => ({ exp: now() - 3_600, iat: now() - 7_200 }), 403],
      ['that ended 2 minutes ago', () => ({ exp: now() - 120 }), 403],
      ['that ended 30 s ago by this clock', () => ({ exp: now() - 30 }), 302],
      ['that begins in 30 s by this clock', () => ({ nbf: now() + 30, iat: now() + 30 }), 302],
      ['that begins in 5 minutes', () => ({ nbf: now() + 300 }), 403],
      ['for another client', () => ({ aud: 'another' }), 403],
      ['of another issuer', () => ({ iss: 'https://other.example' }), 403],
      ['of another login', () => ({ nonce: 'another' }), 403],
    ];
    test.each(lies)('given an ID token %s', async (_what, claims, status) => {
      const browser = openBrowser(addPerson());
      const answer = await provider.lie(
        told => ({ ...told, ...claims() }),
        () => logIn(browser),
      );
      expect(answer.status).toBe(status);
      expect(cookieOf(browser) !== '').toBe(status === 302);
      if (status !== 302) await expectProblem(answer, 403, 'forbidden');
    });
  });

  describe('a user of the provider', () => {
    test('has no password here, and gets none', async () => {
      const { subject, browser } = await enter();
      for (const password of ['', 'null', PASSWORD])
        expect((await new Client(stack.url, subject, password).fetch(ME)).status).toBe(401);
      await expectProblem(await change(subject, { password: PASSWORD }), 409, 'conflict');
      const body = JSON.stringify({ password: PASSWORD, current: '' });
      const own = await send(browser, `/api/users/${subject}`, { method: 'PUT', body });
      await expectProblem(own, 409, 'conflict');
    });

    test('who is disabled here has neither cookie, token nor login left', async () => {
      const { subject, browser } = await enter();
      const token = await provider.accessToken(subject);
      expect([(await send(browser, ME)).status, (await bearer(token)).status]).toEqual([200, 200]);
      expect((await change(subject, { disabled: true })).status).toBe(200);
      expect([(await send(browser, ME)).status, (await bearer(token)).status]).toEqual([401, 401]);
      const { detail } = await expectProblem(await logIn(browser), 403, 'forbidden');
      expect(detail).toContain('disabled');
      expect((await change(subject, { disabled: false })).status).toBe(200);
      expect((await bearer(token)).status).toBe(200);
      expect((await logIn(browser)).status).toBe(302);
    });

    test('who is removed there cannot log in, and a login that is open ends in time', async () => {
      const { subject, browser } = await enter();
      const local = `local${++made}`;
      await admin.post('/api/users', { username: local, password: PASSWORD });
      const answer = await sendLogin(
        stack.url,
        { username: local, password: PASSWORD },
        { Origin: new URL(SITE).origin },
      );
      const byPassword = openBrowser(local);
      for (const line of answer.headers.getSetCookie()) byPassword.setCookie(SITE, line);
      provider.users.delete(subject);
      const { detail } = await expectProblem(await logIn(openBrowser(subject)), 403, 'forbidden');
      expect(detail).toContain('access_denied');
      // To the browser that has a session there the provider shows a page of its own.
      expect(await begin(browser)).not.toContain(SITE);
      await expect(provider.accessToken(subject)).rejects.toThrow();
      // Hours later: the use extends a login by password, and none of the provider.
      await database`update logins set expires = now() + interval '5 minutes', created = now() - interval '6 hours'
        where username in ${database([subject, local])}`;
      expect((await send(browser, ME)).status).toBe(200);
      expect((await send(byPassword, ME)).status).toBe(200);
      const ends =
        await database`select username, expires > now() + interval '1 hour' as extended from logins
        where username in ${database([subject, local])}`;
      expect(Object.fromEntries(ends.map(row => [row.username, row.extended]))).toEqual({
        [subject]: false,
        [local]: true,
      });
      await database`update logins set expires = now() where username = ${subject}`;
      expect((await send(browser, ME)).status).toBe(401);
    });

    test('is an administrator as long as a claim says so', async () => {
      const { subject, browser } = await enter({ groups: ['users', 'operators'] });
      expect((await send(browser, '/api/users')).status).toBe(200);
      // The token does not say so.
      const token = await provider.accessToken(subject);
      expect((await bearer(token, '/api/users')).status).toBe(403);
      const says = await provider.change(token, { groups: ['operators'] });
      expect((await bearer(says, '/api/users')).status).toBe(200);
      provider.users.set(subject, { preferred_username: subject, groups: ['users'] });
      expect((await logIn(browser)).status).toBe(302);
      expect((await send(browser, '/api/users')).status).toBe(403);
      expect((await bearer(says, '/api/users')).status).toBe(403);
      expect(await auditOf(subject)).toEqual([
        'user.create ok',
        'user.update ok',
        'login ok',
        'user.update ok',
        'login ok',
      ]);
    });
  });

  describe('an access token', () => {
    test('is of who has logged in before, and writes', async () => {
      const subject = addPerson();
      const token = await provider.accessToken(subject);
      const { detail } = await expectProblem(await bearer(token), 401, 'unauthorized');
      expect(detail).toContain('log in there once');
      await logIn(openBrowser(subject));
      expect(await (await bearer(token)).json()).toMatchObject({ username: subject });
      const made = await bearer(token, '/api/projects', { method: 'POST', body: '{"name":"x"}' });
      expect(made.status).toBe(201);
    });

    test('changes no host, user or token', async () => {
      const { subject } = await enter({ groups: ['operators'] });
      const token = await provider.change(await provider.accessToken(subject), {
        groups: ['operators'],
      });
      const writes: [string, string, object][] = [
        ['POST', '/api/hosts', { name: 'x', address: '192.0.2.1', keys: [] }],
        ['POST', '/api/users', { username: 'x', password: PASSWORD }],
        ['PUT', `/api/users/${stack.username}`, { password: PASSWORD }],
        ['POST', '/api/users/-/tokens', { name: 'x', scope: 'write' }],
      ];
      for (const [method, path, body] of writes) {
        const answer = await bearer(token, path, { method, body: JSON.stringify(body) });
        expect((await expectProblem(answer, 403, 'forbidden')).detail).toContain('a token may not');
      }
    });

    /** A link that is made by this token, as a request to the service itself. */
    async function linkBy(token: string, path: string) {
      const body = JSON.stringify({ path, seconds: 86_400 });
      const answer = await bearer(token, '/api/links', { method: 'POST', body });
      expect(answer.status).toBe(201);
      const { url, expires } = (await answer.json()) as { url: string; expires: string };
      expect(url.startsWith(`${SITE}${path}?link=`)).toBe(true);
      return { link: `${stack.url}${url.slice(SITE.length)}`, expires: Date.parse(expires) };
    }

    test('makes links to what its user may read, that end no later than it does', async () => {
      const { subject } = await enter();
      const before = Math.floor(Date.now() / 1_000);
      const lasting = { exp: before + 1_800 };
      const token = await provider.change(await provider.accessToken(subject), lasting);
      const { link, expires } = await linkBy(token, ME);
      expect(expires).toBe(lasting.exp * 1_000);
      expect(await (await fetch(link)).json()).toMatchObject({ username: subject });
      expect((await fetch(link.replace(ME, '/api/users'))).status).toBe(401);
      expect((await fetch(link, { method: 'PUT' })).status).toBe(401);
      // Without an administrator's rights: it is its user's.
      const all = await linkBy(token, '/api/users');
      expect((await fetch(all.link)).status).toBe(403);
      const short = await provider.change(token, { exp: Math.floor(Date.now() / 1_000) + 2 });
      const soon = await linkBy(short, ME);
      await waitFor(async () => (await fetch(soon.link)).status === 401, { what: 'its end' });
      expect(Date.now()).toBeGreaterThanOrEqual(soon.expires);
      const late = await provider.change(token, { exp: Math.floor(Date.now() / 1_000) - 2 });
      expect((await fetch((await linkBy(late, ME)).link)).status).toBe(200);
      expect((await fetch(link)).status).toBe(200);
      const endless = await provider.change(token, { exp: 1e13 });
      expect((await fetch((await linkBy(endless, ME)).link)).status).toBe(200);
    });

    test('makes links that end when its user is disabled, and work no more when that is enabled', async () => {
      const { subject } = await enter();
      const { link } = await linkBy(await provider.accessToken(subject), ME);
      expect((await fetch(link)).status).toBe(200);
      for (const disabled of [true, false]) {
        expect((await change(subject, { disabled })).status).toBe(200);
        await expectProblem(await fetch(link), 401, 'unauthorized');
      }
    });

    test('ends with the user', async () => {
      const { subject } = await enter();
      const token = await provider.accessToken(subject);
      expect((await bearer(token)).status).toBe(200);
      expect((await admin.fetch(`/api/users/${subject}`, { method: 'DELETE' })).status).toBe(204);
      await expectProblem(await bearer(token), 401, 'unauthorized');
    });

    const now = Math.floor(Date.now() / 1_000);
    const changes: [string, JWTPayload, 'provider' | 'somebody', number][] = [
      ['for another audience', { aud: 'https://other.example' }, 'provider', 401],
      ['for the client, as an ID token is', { aud: CLIENT.id }, 'provider', 401],
      ['for this audience among others', { aud: ['x', AUDIENCE] }, 'provider', 200],
      ['of another issuer', { iss: 'https://other.example' }, 'provider', 401],
      ['of another subject', { sub: 'nobody' }, 'provider', 401],
      ['without a subject', { sub: undefined }, 'provider', 401],
      ['without an end', { exp: undefined }, 'provider', 401],
      ['that ended an hour ago', { exp: now - 3_600 }, 'provider', 401],
      ['that begins in an hour', { nbf: now + 3_600 }, 'provider', 401],
      ['signed by somebody else', {}, 'somebody', 401],
    ];
    test.each(changes)('%s', async (_what, claims, by, status) => {
      const { subject } = await enter();
      const token = await provider.change(await provider.accessToken(subject), claims, by);
      const answer = await bearer(token);
      expect(answer.status).toBe(status);
      if (status === 401) await expectProblem(answer, 401, 'unauthorized');
    });

    test('may be of a clock that differs by less than a minute', async () => {
      const { subject } = await enter();
      const token = await provider.accessToken(subject);
      const seconds = Math.floor(Date.now() / 1_000);
      const at = async (claims: JWTPayload) =>
        (await bearer(await provider.change(token, claims))).status;
      expect(await at({ exp: seconds - 20 })).toBe(200);
      expect(await at({ nbf: seconds + 20 })).toBe(200);
      expect(await at({ exp: seconds - 120 })).toBe(401);
      expect(await at({ nbf: seconds + 600 })).toBe(401);
    });

    test('is of a subject that is a string', async () => {
      const { subject } = await enter();
      const sub = [subject] as unknown as string;
      const token = await provider.change(await provider.accessToken(subject), { sub });
      await expectProblem(await bearer(token), 401, 'unauthorized');
    });

    test('must be signed', async () => {
      const { subject } = await enter();
      const [, claims = '', signature = ''] = (await provider.accessToken(subject)).split('.');
      const header = (fields: object) => Buffer.from(JSON.stringify(fields)).toString('base64url');
      for (const fields of [{ alg: 'none' }, { alg: 'HS256' }, { alg: 'HS256', kid: 'one' }, {}])
        for (const end of [signature, 'x'])
          expect((await bearer(`${header(fields)}.${claims}.${end}`)).status).toBe(401);
      for (const token of ['a.b.c', '..', `${header({ alg: 'none' })}.${claims}.`])
        expect((await bearer(token)).status).toBe(401);
    });
  });
});

describe('an identity provider that fails', () => {
  const provider = useStarted(() => startOidcProvider(CALLBACK));
  const login = { state: 's', nonce: 'n', verifier: 'v'.repeat(43), target: '/' };
  const connect = (more: { issuer?: string; clientSecret?: string } = {}) =>
    new IdentityProvider({
      issuer: provider.issuer,
      clientId: CLIENT.id,
      clientSecret: CLIENT.secret,
      scopes: 'openid profile',
      audience: AUDIENCE,
      redirectUri: CALLBACK,
      ...more,
    });

  test('is asked again once it is there', async () => {
    const gone = connect({ issuer: `http://127.0.0.1:${await findFreePort()}` });
    for (let n = 0; n < 2; n++)
      await expect(gone.beginLogin(login)).rejects.toMatchObject({ code: 'unavailable' });
    await expect(gone.verifyAccessToken('a.b.c')).rejects.toMatchObject({ code: 'unavailable' });
    const other = connect({ issuer: `${provider.issuer}/another` });
    await expect(other.beginLogin(login)).rejects.toMatchObject({ code: 'unavailable' });
  });

  test('refuses a wrong client secret: the settings are named', async () => {
    const wrong = connect({ clientSecret: 'a wrong one' });
    const search = `?code=x&state=s&iss=${encodeURIComponent(provider.issuer)}`;
    await expect(wrong.finishLogin(search, login)).rejects.toMatchObject({
      code: 'unavailable',
      hint: expect.stringContaining('OIDC_CLIENT_SECRET'),
    });
  });
});
