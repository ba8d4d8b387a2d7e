import type { Stack } from '../stacks/stack.ts';

/** What a browser would keep and send: the cookies of one login. */
export interface BrowserLogin {
  /** The cookies by name: `serviceauth` and `servicetimeout`. */
  cookies: Map<string, string>;
  /** The answer's Set-Cookie lines. */
  lines: string[];
  /** Sends it with the cookies, and with the Origin of a page of ours unless `init` has one; takes new cookies over. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
}

/** POST /login, as a page does. */
export function sendLogin(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${url}/api/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

export async function logIn(
  { url }: Pick<Stack, 'url'>,
  credentials: { username: string; password: string },
): Promise<BrowserLogin> {
  const response = await sendLogin(url, credentials, { Origin: new URL(url).origin });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  const lines = response.headers.getSetCookie();
  const cookies = new Map(lines.map(readCookie));
  return {
    cookies,
    lines,
    async fetch(path, init = {}) {
      const headers = new Headers(init.headers);
      headers.set('Cookie', [...cookies].map(([name, value]) => `${name}=${value}`).join('; '));
      if (!headers.has('Origin')) headers.set('Origin', new URL(url).origin);
      if (init.body) headers.set('Content-Type', 'application/json');
      const answer = await fetch(new URL(path, url), { ...init, headers });
      for (const line of answer.headers.getSetCookie()) cookies.set(...readCookie(line));
      return answer;
    },
  };
}

function readCookie(line: string): [string, string] {
  const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
  return [name, value];
}
