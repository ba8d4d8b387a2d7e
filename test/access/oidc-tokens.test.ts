import type { JWTPayload } from 'jose';
import { expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { AUDIENCE, CLIENT } from '../harness/servers/oidc-provider.ts';
import { ME, SITE, useIdentityProvider } from '../harness/servers/use-identity-provider.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { waitFor } from '../harness/wait-for.ts';

const PASSWORD = 'correct horse';

describeStack(undefined, 'an access token of an identity provider', form => {
  const { provider, stack, admin, addPerson, openBrowser, enter, logIn, bearer, change } =
    useIdentityProvider(form);

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

  test('changes no host, user, token, webhook or worker', async () => {
    const { subject } = await enter({ groups: ['operators'] });
    const token = await provider.change(await provider.accessToken(subject), {
      groups: ['operators'],
    });
    // All may be named that are there for nobody: what it is refused for comes first.
    const writes: [string, string, object?][] = [
      ['POST', '/api/hosts', { name: 'x', address: '192.0.2.1', keys: [] }],
      ['PUT', '/api/hosts/x', { agent: true }],
      ['DELETE', '/api/hosts/x'],
      ['POST', '/api/users', { username: 'x', password: PASSWORD }],
      ['PUT', `/api/users/${stack.username}`, { password: PASSWORD }],
      ['DELETE', `/api/users/${subject}`],
      ['POST', '/api/users/-/tokens', { name: 'x', scope: 'write' }],
      ['DELETE', '/api/users/-/tokens/x'],
      ['POST', '/api/webhooks', { url: 'https://192.0.2.1/ends' }],
      ['DELETE', '/api/webhooks/x'],
      ['PUT', '/api/workers/x', { draining: true }],
    ];
    for (const [method, path, body] of writes) {
      const answer = await bearer(token, path, { method, body: body && JSON.stringify(body) });
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
    expect((await admin().fetch(`/api/users/${subject}`, { method: 'DELETE' })).status).toBe(204);
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
