import { newId } from '../../../shared/ids.ts';
import { expectNoFrame } from '../../harness/clients/no-frame.ts';
import type { Line } from './expected.ts';
import type { Sent } from './requests.ts';
import type { World } from './world.ts';

/** These exist once, as they are written; all else stands behind /api. */
const ONCE = ['/', '/healthz', '/readyz', '/metrics', '/admin/queues'];
/** Parameters whose slashes are the path's own. */
const REST = ['key', 'path', 'event'];

/** A request that can be sent by anybody. */
export interface Prepared {
  method: string;
  target: string;
  body?: string | Uint8Array<ArrayBuffer>;
  headers: Record<string, string>;
}

export function prepare({ ids }: World, { method, path }: Line, sent: Sent): Prepared {
  const known: Record<string, string> = { ...ids, ...sent.ids };
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = known[name];
    if (value === undefined) throw new Error(`${method} ${path} needs ${name}: see requests.ts`);
    return REST.includes(name)
      ? value.split('/').map(encodeURIComponent).join('/')
      : encodeURIComponent(value);
  });
  const prefix = ONCE.includes(path) || path.startsWith('/api/') ? '' : '/api';
  const query = sent.query ? `?${new URLSearchParams(sent.query)}` : '';
  return {
    method,
    target: `${prefix}${filled}${query}`,
    body: sent.json === undefined ? (sent.bytes as Prepared['body']) : JSON.stringify(sent.json),
    headers: {
      ...(sent.json === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...sent.headers,
    },
  };
}

/** The same request for things that were never there. */
export function forNothing(request: Prepared): Prepared {
  const rename = (text: string) => text.replace(ID, () => newId());
  return {
    ...request,
    target: rename(request.target),
    body: typeof request.body === 'string' ? rename(request.body) : request.body,
  };
}

const ID = /\b[0-9a-hjkmnp-tv-z]{26}\b/g;

/** The status, Cache-Control, and what an error says, without ids; the rest of the answer is dropped unread. */
export async function ask(
  { stack }: World,
  { method, target, body, headers }: Prepared,
  credentials: Record<string, string>,
): Promise<{ status: number; caching: string | null; told?: string }> {
  const response = await fetch(`${stack.url}${target}`, {
    method,
    body,
    headers: { ...headers, ...credentials },
    redirect: 'manual',
  });
  const { status } = response;
  const caching = response.headers.get('Cache-Control');
  expectNoFrame(response, target);
  // An answer to HEAD has no words.
  if (status >= 400 && method !== 'HEAD') {
    const { code, detail, hint } = (await response.json()) as Record<string, string>;
    return { status, caching, told: `${code}: ${detail} ${hint}`.replace(ID, '(id)') };
  }
  await response.body?.cancel();
  return { status, caching };
}
