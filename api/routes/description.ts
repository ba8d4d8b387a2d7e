import { readFileSync } from 'node:fs';
import type { Router } from 'express';
import { packageRoot } from '../../shared/package-root.ts';
import { describeService } from '../describe/openapi.ts';
import { drawPage, PAGE_POLICY } from '../describe/page.ts';
import { entityTag, sendRecord } from '../records.ts';
import { type Described, resource } from '../resource.ts';

/** The interface, described by itself: for programs at /api/openapi.json, for people at /api/docs. */
export function routeDescription(
  router: Router,
  groups: { prefix: string; described: Described[] }[],
): void {
  const { version } = JSON.parse(readFileSync(new URL('package.json', packageRoot), 'utf8'));
  const description = describeService(groups, version);
  const tag = entityTag(description);
  const page = drawPage(description);
  resource(router, '/api/openapi.json', {
    get: (req, res) => sendRecord(req, res, { tag, record: () => description }),
  });
  resource(router, '/api/docs', {
    get: (_req, res) => {
      res.type('html').set('Content-Security-Policy', PAGE_POLICY).send(page);
    },
  });
}
