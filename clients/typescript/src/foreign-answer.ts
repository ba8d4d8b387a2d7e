import { WindlassError } from './error.ts';

/** The error for an answer of another program than Windlass, such as a proxy that asks for a login. */
export function foreignAnswer({ url, status }: Response, came: string): WindlassError {
  return foreign(status, `${url ? new URL(url).host : 'The service'} answered with ${came}.`);
}

const foreign = (status: number, detail: string) =>
  new WindlassError({
    code: 'foreign_answer',
    status,
    detail,
    hint: 'Is the address right, and no proxy before it that asks for a login?',
  });

/**
 * Throws for a redirect that was not followed, which did nothing, and for JSON to which one led at another origin: only bytes
 * come from there, of videos in the object store.
 */
export function requireOrigin(response: Response, base: string): Response {
  const { type, status, headers, redirected, url } = response;
  const isElsewhere =
    redirected && isJson(response) && new URL(url).origin !== new URL(base).origin;
  // A page is not told where to: its answer has no status.
  const isRedirect = type === 'opaqueredirect' || (status >= 300 && status < 400 && status !== 304);
  if (!isElsewhere && !isRedirect) return response;
  const other = isElsewhere ? url : (headers.get('Location') ?? 'another address');
  throw foreign(
    status,
    `What answers at ${base} is not Windlass. It says to ask ${other} instead.`,
  );
}

export const isJson = ({ headers }: Response): boolean =>
  /\bjson\b/.test(headers.get('Content-Type') ?? '');

/** The answer of a call whose good answers are JSON or nothing. Throws WindlassError for something else. */
export async function requireJson(response: Response): Promise<Response> {
  if (isJson(response) || response.body === null || !response.ok) return response;
  if ((await response.text()) !== '') throw foreignAnswer(response, 'no JSON');
  return new Response(null, response);
}

/** Throws for a page, such as a proxy's login. The service answers clients with no HTML, not even for an HTML file. */
export async function requireNoPage(response: Response): Promise<Response> {
  if (!/\bhtml\b/.test(response.headers.get('Content-Type') ?? '')) return response;
  await response.body?.cancel();
  throw foreignAnswer(response, 'HTML');
}
