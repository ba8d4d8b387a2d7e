import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { packageRoot } from '../../shared/package-root.ts';
import { entityTag, sendRecord } from '../http/conditional-requests.ts';
import { type OperationRouter, type RoutedOperation, resource } from '../http/resource.ts';
import { DOCS_PAGE_CSP, renderDocsPage } from '../openapi/docs-page.ts';
import { createOpenApiDocument } from '../openapi/document.ts';
import { operation } from '../openapi/operation.ts';

/** The interface, described by itself, these two included: for programs at /api/openapi.json, for people at /api/docs. */
export function routeDescription(
  router: OperationRouter,
  groups: { prefix: string; operations: RoutedOperation[] }[],
): void {
  resource(router, '/api/openapi.json', {
    get: operation({
      summary: 'This description',
      for: 'everyone',
      headers: ['If-None-Match'],
      answers: {
        200: {
          means: 'An OpenAPI 3.1 document.',
          json: z.looseObject({ openapi: z.literal('3.1.0') }),
        },
        304: 'Unchanged.',
      },
      handle: ({ req, res }) => sendRecord(req, res, { tag, record: () => description }),
    }),
  });
  resource(router, '/api/docs', {
    get: operation({
      summary: 'This description, as a page for people',
      for: 'everyone',
      answers: { 200: { means: 'The page.', types: ['text/html'] } },
      handle: ({ res }) => {
        res.type('html').set('Content-Security-Policy', DOCS_PAGE_CSP).send(page);
      },
    }),
  });
  const { version } = JSON.parse(readFileSync(new URL('package.json', packageRoot), 'utf8'));
  const own = { prefix: '', operations: router.operations };
  const description = createOpenApiDocument([...groups, own], version);
  const tag = entityTag(description);
  const page = renderDocsPage(description);
}
