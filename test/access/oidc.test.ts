import type { JWTPayload } from 'jose';
import { describe, expect, test } from 'vitest';
import { IdentityProvider } from '../../api/identity/oidc/identity-provider.ts';
import { Client } from '../../servers/api-client.ts';
import { findFreePort } from '../../servers/free-port.ts';
import { newId } from '../../shared/ids.ts';
import { sendLogin } from '../harness/browser/browser-login.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { AUDIENCE, CLIENT, startOidcProvider } from '../harness/servers/oidc-provider.ts';
import {
  CALLBACK,
  ME,
  SITE,
  useIdentityProvider,
} from '../harness/servers/use-identity-provider.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStackDatabase, useStarted } from '../harness/stacks/use-stack.ts';

const PASSWORD = 'correct horse';

describeStack(undefined, 'an identity provider', form => {
  const {
    provider,
    stack,
    admin,
    addPerson,
    openBrowser,
    enter,
    begin,
    logIn,
    cookieOf,
    send,
    bearer,
    change,
    auditOf,
  } = useIdentityProvider(form);
  const database = useStackDatabase(stack);

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
      expect((await admin().fetch('/api/users/another-name')).status).toBe(404);
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
      const local = `local${newId()}`;
      await admin().post('/api/users', { username: local, password: PASSWORD });
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
      await expectRefused(await again(), 'state');
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

    test('goes on with a login of which the browser sends a copy meanwhile', async () => {
      const browser = openBrowser(addPerson());
      const callback = await begin(browser);
      const first = await provider.holdUserInfo(async asked => {
        const answer = browser.get(callback);
        await asked;
        await expectRefused(await browser.get(callback), 'state');
        return { answer };
      });
      expect((await first.answer).status).toBe(302);
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
      const local = `local${newId()}`;
      await admin().post('/api/users', { username: local, password: PASSWORD });
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
      // Nor does a link outlive it.
      const link = await send(browser, '/api/links', {
        method: 'POST',
        body: JSON.stringify({ path: '/api/jobs', seconds: 3_600 }),
      });
      const { expires } = (await link.json()) as { expires: string };
      expect(Date.parse(expires) - Date.now()).toBeLessThanOrEqual(300_000);
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

    test('is made an administrator at the provider alone', async () => {
      const { subject } = await enter();
      const answer = await change(subject, { administrator: true });
      const { hint } = await expectProblem(answer, 409, 'conflict');
      expect(hint).toContain('OIDC_ADMINISTRATORS');
      expect(await admin().get(`/api/users/${subject}`)).toMatchObject({ administrator: false });
      expect((await change(subject, { administrator: false })).status).toBe(200);
      const { subject: other } = await enter({ groups: ['operators'] });
      await expectProblem(await change(other, { administrator: false }), 409, 'conflict');
      expect((await change(other, { disabled: true })).status).toBe(200);
    });

    test('is an administrator as long as a claim says so', async () => {
      const { subject, browser } = await enter({ groups: ['users', 'operators'] });
      expect((await send(browser, '/api/users')).status).toBe(200);
      // The token does not say so.
      const token = await provider.accessToken(subject);
      expect((await bearer(token, '/api/users')).status).toBe(403);
      const less = await bearer(token);
      expect(await less.json()).toMatchObject({ administrator: false });
      const says = await provider.change(token, { groups: ['operators'] });
      const own = await bearer(says);
      expect(await own.json()).toMatchObject({ administrator: true });
      expect(own.headers.get('ETag')).not.toBe(less.headers.get('ETag'));
      expect((await bearer(says, '/api/users')).status).toBe(200);
      provider.users.set(subject, { preferred_username: subject, groups: ['users'] });
      expect((await logIn(browser)).status).toBe(302);
      expect((await send(browser, '/api/users')).status).toBe(403);
      expect((await bearer(says, '/api/users')).status).toBe(403);
      expect(await auditOf(subject)).toEqual([
        'user.create ok',
        'user.promote ok',
        'login ok',
        'user.demote ok',
        'login ok',
      ]);
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
