import createClient, { type Client } from 'openapi-fetch';
import { errorOf } from './error.ts';
import { escapeId, escapePath } from './escape-path.ts';
import { requireJson } from './foreign-answer.ts';
import type { Http } from './http.ts';
import type { paths } from './schema.ts';

/** Every operation of the service with its types, as openapi-fetch gives them: `api.GET('/api/hosts')`. */
export type Api = Client<paths, Json>;
/** Where an operation answers JSON or bytes, the types are those of its JSON; `parseAs` gives bytes. */
type Json = `application/${string}json`;

export function createApi(http: Http): Api {
  const api = createClient<paths, Json>({
    baseUrl: http.base,
    fetch: http.fetch,
    // What an event says has slashes of its own, and a query of any names.
    pathSerializer: (path, ids) =>
      path
        .replace('/{event}', () => escapePath(`/${ids.event}`))
        .replace(/\{(.+?)\}/g, (_, name) => escapeId(`${ids[name]}`)),
    querySerializer: { object: { style: 'form', explode: true } },
  });
  api.use({
    onResponse: ({ response, options: { parseAs } }) =>
      parseAs === 'json' ? requireJson(response) : undefined,
  });
  return api;
}

/** The data of an answer of `api`. Throws WindlassError where there is an error instead. */
export async function unwrap<Data>(
  answer: Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<Data> {
  const { data, error, response } = await answer;
  if (response.ok) return data as Data;
  throw errorOf(response, error);
}
