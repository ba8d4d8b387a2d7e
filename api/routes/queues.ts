import type { Express, Request, Response } from 'express';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { JobQueues } from '../../shared/jobs/queue.ts';
import { contentPolicy } from '../http/content-policy.ts';
import { publicPath } from '../http/public-url.ts';
import type { RoutedOperation } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { requireAdministrator } from '../identity/current-user.ts';
import { queueUnavailable } from '../monitoring/queue-unavailable.ts';
import { operation } from '../openapi/operation.ts';

const PATH = '/admin/queues';
/** The board's scripts set inline styles; everything else is from this origin. */
const POLICY = contentPolicy(
  "default-src 'none'",
  "script-src 'self'",
  "worker-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "base-uri 'self'",
  "form-action 'none'",
);

/** For the description of the interface; the board's own router answers. */
const BOARD: RoutedOperation = {
  path: PATH,
  method: 'get',
  operation: operation({
    id: 'showQueues',
    topic: 'operations',
    summary: 'The queues, as a page to look at',
    for: 'administrators',
    answers: { 200: { means: 'Bull Board, read-only.', types: ['text/html'] } },
    handle: ({ req }) => {
      throw new Error(`the board did not answer: ${req.originalUrl}`);
    },
  }),
};

/** Bull Board, read-only, for server administrators. Queue entries hold job ids only. */
export default routes('monitoring', (router, { queues, log, config }) => {
  // Loaded and opened at the first request, so that it costs no time and no connections before.
  let board: Promise<Express> | undefined;
  const open = () => {
    board ??= loadBoard(queues, publicPath(config)).catch((error: unknown) => {
      board = undefined;
      throw queueUnavailable(error);
    });
    return board;
  };

  router.operations.push(BOARD);
  router.use(PATH, async (req, res, next) => {
    requireAdministrator(res);
    refuseChanges(req);
    res.set('Content-Security-Policy', POLICY).set('Cache-Control', 'no-store');
    try {
      const show = await open();
      show(req, res, next);
    } catch (error) {
      if (!(error instanceof WindlassError) || !isPage(req)) throw error;
      log.debug({ err: error }, 'the queues cannot be shown');
      sendErrorPage(res, error);
    }
  });
});

async function loadBoard(queues: JobQueues, path: string): Promise<Express> {
  const { openBoard } = await import('../monitoring/bull-board.ts');
  return openBoard(queues, { path, page: PATH });
}

/** Only Windlass writes to the queues. */
function refuseChanges(req: Request): void {
  if (req.method === 'GET' || req.method === 'HEAD') return;
  throw new WindlassError('method_not_allowed', {
    detail: 'the queues are shown here and cannot be changed.',
    hint: 'DELETE /api/jobs/(id) cancels a job.',
    headers: { Allow: 'GET, HEAD' },
  });
}

const isPage = (req: Request) => req.accepts(['json', 'html']) === 'html';

function sendErrorPage(res: Response, error: WindlassError): void {
  res.status(error.status).set(error.headers).type('html');
  res.send(
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>Windlass queues</title><h1>${error.message}</h1><p>${error.hint ?? ''}</p></html>`,
  );
}
