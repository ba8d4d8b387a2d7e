import { WindlassError } from './error.ts';

/** The error for an answer of another program than Windlass, such as a proxy that asks for a login. */
export function foreignAnswer({ url, status }: Response, came: string): WindlassError {
  return new WindlassError({
    code: 'foreign_answer',
    status,
    detail: `${url ? new URL(url).host : 'The service'} answered with ${came}.`,
    hint: 'Is the address right, and no proxy before it that asks for a login?',
  });
}

/** The answer of a call whose good answers are JSON or nothing. Throws WindlassError for something else. */
export async function requireJson(response: Response): Promise<Response> {
  const isJson = /\bjson\b/.test(response.headers.get('Content-Type') ?? '');
  if (isJson || response.body === null || !response.ok) return response;
  if ((await response.text()) !== '') throw foreignAnswer(response, 'no JSON');
  return new Response(null, response);
}

/** Throws for a page, such as a proxy's login. The service answers clients with no HTML, not even for an HTML file. */
export async function requireNoPage(response: Response): Promise<Response> {
  if (!/\bhtml\b/.test(response.headers.get('Content-Type') ?? '')) return response;
  await response.body?.cancel();
  throw foreignAnswer(response, 'HTML');
}
