import { z } from 'zod';
import { RELEASE } from '../../shared/process/release.ts';
import { entityTag, sendRecord } from '../http/conditional-requests.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { createOpenApiDocument } from '../openapi/document.ts';
import { operation } from '../openapi/operation.ts';
import { DOCS_PAGE_CSP, renderDocsPage } from '../openapi/page/docs-page.ts';

/** The description of all operations, these two included: as OpenAPI and as a page. */
export default routes('public', (router, _api, describeAll) => {
  // Made at the first request: all files have added their routes by then.
  let made: ReturnType<typeof make> | undefined;
  const make = () => {
    const description = createOpenApiDocument(describeAll(), RELEASE);
    return { description, tag: entityTag(description), page: renderDocsPage(description) };
  };
  const describe = () => {
    made ??= make();
    return made;
  };

  resource(router, '/api/openapi.json', {
    get: operation({
      id: 'getDescription',
      topic: 'operations',
      summary: 'This description',
      for: 'everyone',
      headers: ['If-None-Match'],
      answers: {
        200: {
          means: 'An OpenAPI 3.1 document.',
          json: z.looseObject({ openapi: z.literal('3.1.0') }).meta({ id: 'OpenApiDocument' }),
        },
        304: 'Unchanged.',
      },
      handle: ({ req, res }) => {
        const { tag, description } = describe();
        sendRecord({ req, res }, { tag, record: () => description });
      },
    }),
  });
  resource(router, '/api/docs', {
    get: operation({
      id: 'showDocumentation',
      topic: 'operations',
      summary: 'This description, as a page for people',
      for: 'everyone',
      answers: { 200: { means: 'The page.', types: ['text/html'] } },
      handle: ({ res }) => {
        res.type('html').set('Content-Security-Policy', DOCS_PAGE_CSP).send(describe().page);
      },
    }),
  });
});
