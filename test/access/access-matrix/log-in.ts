import type { Actor } from './expected.ts';
import { credentialsOf } from './requests.ts';
import type { World } from './world.ts';

/** The cookies of a new login, as a browser sends them, and its end. */
export async function logIn(
  world: World,
  actor: Actor,
): Promise<{ cookie: string; end(): Promise<void> }> {
  const { url } = world.stack;
  const response = await fetch(`${url}/api/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(credentialsOf(world, actor)),
  });
  if (!response.ok) throw new Error(await response.text());
  const cookie = response.headers
    .getSetCookie()
    .map(field => field.split(';')[0])
    .join('; ');
  const end = async () => {
    const headers = { Cookie: cookie, Origin: url };
    const ended = await fetch(`${url}/api/logout`, { method: 'DELETE', headers });
    if (ended.status !== 204) throw new Error(await ended.text());
  };
  return { cookie, end };
}
