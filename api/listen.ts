import { createServer, type Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Express } from 'express';
import { exitWith } from '../shared/service/lifecycle.ts';
import type { ApiContext } from './context.ts';
import { answerClientErrors } from './http/client-errors.ts';
import { handleExpectContinue } from './http/expect-continue.ts';
import { createMessageClasses } from './http/message-classes.ts';
import { refuseFloods } from './middleware/refuse-floods.ts';

/** How long responses may go on being sent when the process is asked to stop. */
const DRAIN_MS = 10_000;

/** Serves the app at HOST and PORT. Ends the process where that is not possible. */
export async function listen(app: Express, context: ApiContext): Promise<Server> {
  const { config, log } = context;
  const listener = refuseFloods(app, context);
  // No requestTimeout: middleware/limit-body-time.ts limits slow bodies, and a part of 5 GiB may take long.
  const server = createServer(
    {
      ...createMessageClasses(app),
      requestTimeout: 0,
      headersTimeout: 15_000,
      connectionsCheckingInterval: 5_000,
      keepAliveTimeout: 65_000,
      maxHeaderSize: config.LIMIT_HEADER_BYTES,
      // app.ts answers with a problem document.
      requireHostHeader: false,
    },
    listener,
  );
  // By default Node drops the fields after the 2,000th in silence; their bytes are limited.
  server.maxHeadersCount = 0;
  answerClientErrors(server, { log, headerBytes: config.LIMIT_HEADER_BYTES });
  handleExpectContinue(server, listener);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(config.PORT, config.HOST, resolve);
  }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE')
      exitWith(`port ${config.PORT} on ${config.HOST} is in use; set PORT to a free one`);
    exitWith(`cannot listen on ${config.HOST}:${config.PORT} (${error.code}); set HOST and PORT`);
  });
  // The process may have all the files open that it may have.
  server.on('error', err => log.warn({ err }, 'a connection could not be accepted'));
  return server;
}

/** Accepts no more connections, and closes the open ones when they have their responses. */
export async function drain(server: Server): Promise<void> {
  const closed = new Promise(resolve => server.close(resolve));
  // Waiting requests are answered now, and then keep their connections open.
  const sweep = setInterval(() => server.closeIdleConnections(), 50);
  await Promise.race([closed, delay(DRAIN_MS)]);
  clearInterval(sweep);
  server.closeAllConnections();
}
