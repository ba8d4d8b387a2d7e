import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RedirectBrowser } from '../harness/browser/redirect-browser.ts';
import { startProgram } from '../harness/run-program.ts';
import { startOidcProvider } from '../harness/servers/oidc-provider.ts';
import {
  CALLBACK,
  ME,
  SITE,
  useIdentityProvider,
} from '../harness/servers/use-identity-provider.ts';
import { type SecondApi, startSecondApi } from '../harness/stacks/second-api.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describe('two processes and an identity provider', () => {
  const { provider, stack, addPerson, openBrowser, begin, change, auditOf } = useIdentityProvider({
    start: startStack,
  });
  const others: SecondApi[] = [];
  const startOther = async (settings: Record<string, string> = {}) => {
    const other = await startSecondApi(stack, settings);
    others.push(other);
    return other.url;
  };
  let second: string;

  beforeAll(async () => {
    second = await startOther();
  });
  afterAll(() => Promise.all(others.map(other => other.stop())));

  /** The same request of the same browser, at any process. */
  const send = (browser: RedirectBrowser, url: string, at: string, init: RequestInit = {}) => {
    const cookies = [...browser.cookies(url)].map(([name, value]) => `${name}=${value}`);
    return fetch(`${at}${url.slice(SITE.length)}`, {
      ...init,
      redirect: 'manual',
      headers: { Cookie: cookies.join('; '), Origin: new URL(SITE).origin, ...init.headers },
    });
  };
  const beginAt = async (browser: RedirectBrowser, at: string) => {
    const answer = await send(browser, `${SITE}/api/login/oidc`, at);
    for (const line of answer.headers.getSetCookie()) browser.setCookie(CALLBACK, line);
    return (await browser.follow(answer.headers.get('Location') ?? '', CALLBACK)).url;
  };

  test('take a login that the other one began, once, and hear of its end at once', async () => {
    const subject = addPerson();
    const browser = openBrowser(subject);
    const callback = await begin(browser);
    const copies = [second, stack.url, second].map(at => send(browser, callback, at));
    const answers = await Promise.all(copies);
    expect(answers.map(({ status }) => status).sort()).toEqual([302, 400, 400]);
    const done = answers.find(({ status }) => status === 302);
    for (const line of done?.headers.getSetCookie() ?? []) browser.setCookie(SITE, line);
    const urls = [stack.url, second];
    const me = async () =>
      Promise.all(urls.map(async at => (await send(browser, `${SITE}${ME}`, at)).status));
    expect(await me()).toEqual([200, 200]);
    const out = await send(browser, `${SITE}/api/logout`, second, { method: 'DELETE' });
    expect([out.status, await me()]).toEqual([204, [401, 401]]);
    expect(await auditOf(subject)).toEqual(['user.create ok', 'login ok', 'logout ok']);
  });

  test('refuse whoever is disabled at the other one', async () => {
    const subject = addPerson();
    const browser = openBrowser(subject);
    const done = await send(browser, await begin(browser), second);
    for (const line of done.headers.getSetCookie()) browser.setCookie(SITE, line);
    const headers = { Authorization: `Bearer ${await provider.accessToken(subject)}` };
    const byToken = async () => (await fetch(`${second}${ME}`, { headers })).status;
    const byCookie = async () => (await send(browser, `${SITE}${ME}`, second)).status;
    const callback = await begin(browser);
    expect([await byToken(), await byCookie()]).toEqual([200, 200]);
    expect((await change(subject, { disabled: true })).status).toBe(200);
    expect(await byCookie()).toBe(401);
    await waitFor(async () => (await byToken()) === 401, { what: 'the token', timeoutMs: 2_000 });
    expect((await send(browser, callback, second)).status).toBe(403);
  });

  test('with another issuer take nobody of the other for their own', async () => {
    const subject = addPerson();
    const browser = openBrowser(subject);
    const done = await send(browser, await begin(browser), stack.url);
    expect(done.status).toBe(302);
    const other = await startOidcProvider(CALLBACK);
    try {
      const elsewhere = await startOther({ OIDC_ISSUER: other.issuer });
      const enter = async (preferred_username: string) => {
        other.users.set(subject, { preferred_username });
        const there = openBrowser(subject);
        there.setCookie(other.issuer, `who=${subject}`);
        return send(there, await beginAt(there, elsewhere), elsewhere);
      };
      // The answer of one provider is not brought to the other, though the cookie opens.
      const ofOther = openBrowser(subject);
      expect((await send(ofOther, await begin(ofOther), elsewhere)).status).toBe(403);
      const ask = (token: string) =>
        fetch(`${elsewhere}${ME}`, { headers: { Authorization: `Bearer ${token}` } });
      expect((await enter(subject)).status).toBe(403);
      expect((await ask(await other.accessToken(subject))).status).toBe(401);
      expect((await enter(`${subject}-there`)).status).toBe(302);
      const me = await (await ask(await other.accessToken(subject))).json();
      expect(me).toMatchObject({ username: `${subject}-there` });
      expect((await ask(await provider.accessToken(subject))).status).toBe(401);
    } finally {
      await other.stop();
    }
  });

  test('finish what was begun before the keys rotated, and what another began after it', async () => {
    const [before, after] = [openBrowser(addPerson()), openBrowser(addPerson())];
    const callback = await begin(before);
    const { code } = await startProgram({
      args: ['dist/cli/main.js', 'keys', 'rotate'],
      settings: { DATA_DIR: stack.dataDir },
      cwd: stack.dataDir,
    }).ended;
    expect(code).toBe(0);
    const renewed = await startOther();
    expect((await send(before, callback, renewed)).status).toBe(302);
    const next = await beginAt(after, renewed);
    await waitFor(async () => (await send(after, next, stack.url)).status === 302, {
      what: 'the first process to take it',
    });
  });
});
