import { expect } from 'vitest';
import { RedirectBrowser } from '../browser/redirect-browser.ts';
import { connectClient } from '../hosts/remote.ts';
import type { Form } from '../stacks/forms.ts';
import { useStarted } from '../stacks/use-stack.ts';
import { AUDIENCE, CLIENT, startOidcProvider } from './oidc-provider.ts';

/** PUBLIC_URL, behind a proxy that strips the path. */
export const SITE = 'https://windlass.example/science';
export const CALLBACK = `${SITE}/api/login/oidc/callback`;
export const ME = '/api/users/-';

/** A stack whose users log in at an identity provider, and the browsers of such users. */
export function useIdentityProvider(form: Pick<Form, 'start'>, more: Record<string, string> = {}) {
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
        ...more,
      },
    }),
  );
  const admin = () => connectClient(stack);
  let made = 0;

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
  /** Logs in as far as the provider's answer: the callback with its code. */
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
    admin().fetch(`/api/users/${username}`, { method: 'PUT', body: JSON.stringify(body) });
  const auditOf = async (user: string) => {
    const path = `/api/audit?user=${user}&limit=1000`;
    const { items } = await admin().get<{ items: { action: string; outcome: string }[] }>(path);
    return items.map(({ action, outcome }) => `${action} ${outcome}`);
  };

  return {
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
  };
}
