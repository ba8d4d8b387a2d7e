import { WindlassError } from './error.ts';

/** The error of an answer that another program gave than Windlass, such as a proxy that asks for a login. */
export function foreignAnswer({ url, status }: Response, came: string): WindlassError {
  const asked = url ? `${new URL(url).host} answered` : 'The answer came';
  return new WindlassError({
    code: 'foreign_answer',
    status,
    detail: `${asked} with ${came}.`,
    hint: 'Is it the address of Windlass, and does no proxy before it ask for a login?',
  });
}

/** The answer of a call whose good answers are JSON or nothing. Throws WindlassError for something else. */
export async function requireJson(response: Response): Promise<Response> {
  const { ok, status, statusText, headers } = response;
  const type = headers.get('Content-Type') ?? '';
  if (!ok || response.body === null || /\bjson\b/.test(type)) return response;
  const text = await response.text();
  if (text !== '') throw foreignAnswer(response, 'no JSON');
  return new Response(null, { status, statusText, headers });
}

/** Throws for a page, such as a proxy's login. No answer of the service to a client is HTML, not even a file that is. */
export async function requireNoPage(response: Response): Promise<Response> {
  if (!/^text\/html\b/i.test(response.headers.get('Content-Type') ?? '')) return response;
  await response.body?.cancel();
  throw foreignAnswer(response, 'a page of HTML');
}
