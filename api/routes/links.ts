import type { Request } from 'express';
import { z } from 'zod';
import type { ApiContext } from '../context.ts';
import { MAX_ADDRESS_LENGTH } from '../http/client-errors.ts';
import { publicPath, publicUrl } from '../http/public-url.ts';
import { matchesPath, type RoutedOperation, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { ownUrl } from '../http/same-origin.ts';
import { invalidInput } from '../http/validate.ts';
import { auditOf } from '../identity/audit.ts';
import { credentialEnds, currentUser } from '../identity/current-user.ts';
import { linkReads } from '../identity/identify-sender.ts';
import { makeLink } from '../identity/links.ts';
import { operation } from '../openapi/operation.ts';

const newLink = z
  .strictObject({
    path: z
      .string()
      .regex(/^\//, 'must begin with one slash, such as /api/jobs/(id)/events')
      .max(MAX_ADDRESS_LENGTH)
      .describe('Such as /api/jobs/(id)/events.'),
    seconds: z.number().int().min(1).max(86_400).default(3_600),
  })
  .meta({ id: 'NewLink' });
const madeLink = z.object({ url: z.string(), expires: z.date() }).meta({ id: 'MadeLink' });

/** Links: for what a page cannot send headers with, such as <video> and EventSource. */
export default routes('json-body', (router, api, describeAll) => {
  resource(router, '/links', {
    post: operation({
      id: 'makeLink',
      topic: 'accounts',
      summary: 'Make a link to GET one path without other credentials',
      details:
        'For `<video>`, EventSource and downloads. Whoever has the link may GET and HEAD that path, with its query and further parameters, as you may at that moment: until it expires, or your password is changed, or the token that made it ends. A link never writes. A `read` token makes links to what it may read.',
      body: newLink,
      answers: { 201: { means: 'Made; nothing lists it.', json: madeLink } },
      errors: ['forbidden'],
      handle: async ({ req, res, body }) => {
        const { path, seconds } = body();
        const address = readAddress(path, publicPath(api.config));
        requireReadable(address.pathname, describeAll());
        // Each leaves an entry of the audit.
        await api.freeSpace.assertFree();
        const maker = {
          user: currentUser(res),
          token: res.locals.token,
          ends: credentialEnds(res),
        };
        const { link, expires } = await makeLink(api.database.db, api.config, maker, {
          address: { path: address.pathname, query: address.search.slice(1) },
          seconds,
          audit: auditOf({ req, res }),
        });
        const query = `${address.search || '?'}${address.search.length > 1 ? '&' : ''}link=${link}`;
        const url = `${baseUrl(api, req)}${address.pathname}${query}`;
        res.status(201).set('Cache-Control', 'no-store').json({ url, expires });
      },
    }),
  });
});

/** The path as a browser would send it. `below` is that of PUBLIC_URL, which the paths in `Location` begin with. */
function readAddress(path: string, below: string): URL {
  const own = new URL('http://own.invalid');
  const url = path.startsWith('/') && URL.canParse(path, own.href) ? new URL(path, own) : undefined;
  if (url?.origin !== own.origin)
    throw wrongPath('must begin with one slash, such as /api/jobs/(id)/events');
  if (url.hash !== '') throw wrongPath('must have no fragment (#)');
  if (url.searchParams.has('link')) throw wrongPath('must have no `link` of its own');
  if (url.searchParams.has('cache')) throw linkReads();
  if (below !== '' && url.pathname.startsWith(`${below}/`))
    url.pathname = url.pathname.slice(below.length);
  return url;
}

/** What everybody may GET needs no link; /metrics and the like are for operators. */
function requireReadable(path: string, operations: RoutedOperation[]): void {
  const isReadable = operations.some(
    one =>
      one.method === 'get' &&
      one.operation.for !== 'everyone' &&
      one.path.startsWith('/api/') &&
      (matchesPath(one.path, path) || matchesPath(one.path, `/api${path}`)),
  );
  if (!isReadable) throw wrongPath('is no path that a GET with credentials reads');
}

const wrongPath = (problem: string) =>
  invalidInput(
    [{ field: 'path', problem }],
    'Send the path of one GET, with its query. /api/docs lists them.',
  );

/** Where the client found us, unless PUBLIC_URL says where clients do: the answer is for this client alone. */
const baseUrl = (api: ApiContext, req: Request): string =>
  api.config.PUBLIC_URL
    ? publicUrl(api.config)
    : (ownUrl(req, api.config)?.origin ?? publicUrl(api.config));
