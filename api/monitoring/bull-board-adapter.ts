import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ExpressAdapter } from '@bull-board/express';
import express, { type Express, type Request } from 'express';
import { withDeadline } from '../../shared/process/deadline.ts';
import { queueUnavailable } from './queue-unavailable.ts';

type Routes = Parameters<ExpressAdapter['setApiRoutes']>[0];
type EntryRoute = Parameters<ExpressAdapter['setEntryRoute']>[0];

/** A queue that does not answer within this time counts as unreachable. */
const DEADLINE = { ms: 5_000, what: 'the queue' };

/**
 * Bull Board's adapter for Express, read-only: it has no routes that change anything, its page loads no fonts from another
 * host, and errors are problem documents.
 */
export class ReadOnlyAdapter extends ExpressAdapter {
  #pages = '';

  constructor(basePath: string) {
    super();
    this.setBasePath(basePath);
    this.app.disable('x-powered-by');
  }

  override getRouter(): Express {
    return this.app;
  }

  override setViewsPath(path: string): this {
    this.#pages = path;
    return this;
  }

  /**
   * Not express.static(): its redirect to a folder has a policy that permits frames, and its error for a bad range is
   * none of ours. The files are small.
   */
  override setStaticPath(route: string, path: string): this {
    this.app.use(route, express.static(path, { redirect: false, acceptRanges: false }));
    return this;
  }

  override setEntryRoute({ route, handler }: EntryRoute): this {
    const template = readFileSync(join(this.#pages, 'index.ejs'), 'utf8');
    this.app.get(route, (_req, res) => {
      const { basePath, uiConfig } = this;
      res.type('html').send(drawPage(template, handler({ basePath, uiConfig }).params));
    });
    return this;
  }

  override setApiRoutes(routes: Routes): this {
    for (const { method, route, handler } of routes) {
      if (method !== 'get') continue;
      this.app.get(route, async (req, res) => {
        const { status = 200, body } = await withDeadline(DEADLINE, async () =>
          handler(this.#ask(req)),
        ).catch((error: unknown) => {
          throw queueUnavailable(error);
        });
        res.status(status).json(body);
      });
    }
    return this;
  }

  #ask({ query, params, headers }: Request) {
    return {
      queues: this.bullBoardQueues ?? new Map(),
      uiConfig: this.uiConfig,
      query,
      params,
      body: {},
      headers: headers as Record<string, string | undefined>,
    };
  }
}

/** The template's page with its scripts and style sheets only: nothing from other hosts and no inline script. */
function drawPage(template: string, params: Record<string, string>): string {
  const styles = [...template.matchAll(/<link href="(static\/[\w./-]+\.css)"/g)];
  const scripts = [...template.matchAll(/<script defer src="(static\/[\w./-]+\.js)"/g)];
  if (styles.length === 0 || scripts.length === 0)
    throw new Error('the template of @bull-board/ui has changed: adapt bull-board-adapter.ts');
  return [
    '<!doctype html><html lang="en" dir="ltr"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1, shrink-to-fit=no">',
    `<base href="${params.basePath}"><title>${params.title}</title>`,
    `<link rel="icon" type="image/svg+xml" id="fav-logo" href="${params.favIconDefault}">`,
    ...styles.map(([, href]) => `<link href="${href}" rel="stylesheet">`),
    '</head><body class="preload">',
    // JSON data, which a Content-Security-Policy does not treat as a script.
    `<script id="__UI_CONFIG__" type="application/json">${params.uiConfig}</script>`,
    '<div id="root"></div>',
    ...scripts.map(([, src]) => `<script defer src="${src}"></script>`),
    '</body></html>',
  ].join('\n');
}
