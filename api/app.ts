import express, { type Express, Router } from 'express';
import { explainMissingObject } from '../shared/installation/store-marker.ts';
import { MissingObject } from '../shared/storage/object-store.ts';
import type { ApiContext } from './context.ts';
import { addressTooLong, MAX_ADDRESS_LENGTH } from './http/client-errors.ts';
import { locateBelow, publicPath } from './http/public-url.ts';
import { refuseAmbiguous } from './http/refuse-ambiguous.ts';
import { requestIdOf } from './http/request-id.ts';
import { createRouters, type RouteFile } from './http/routes.ts';
import { SECURITY_HEADERS } from './http/security-headers.ts';
import { allowOrigins } from './middleware/allow-origins.ts';
import { authenticate, authenticateLateBody } from './middleware/authenticate.ts';
import { closePipelinedResponses } from './middleware/close-pipelined-responses.ts';
import { disconnectStalledReaders } from './middleware/disconnect-stalled-readers.ts';
import { answerErrors, refuseUnknownPath } from './middleware/errors.ts';
import { limitBodyTime } from './middleware/limit-body-time.ts';
import { limitRequests } from './middleware/limit-requests.ts';
import { logRequests } from './middleware/log-requests.ts';
import { nameContentType } from './middleware/name-content-type.ts';
import { readBodies } from './middleware/read-bodies.ts';
import { takeLink } from './middleware/take-link.ts';
import { overrideMethod } from './tus/override-method.ts';

/** The HTTP service. Long work becomes a job. */
export function createApp(api: ApiContext, files: RouteFile[]): Express {
  const app = express();
  app
    .disable('x-powered-by')
    .disable('etag')
    .set('trust proxy', api.config.TRUST_PROXY)
    .set('query parser', 'simple');
  locateBelow(app, publicPath(api.config));
  app.use((req, res, next) => {
    res.locals.requestId = requestIdOf(req);
    res.locals.auditRates = api.auditRates;
    res.set({ 'X-Request-Id': res.locals.requestId, ...SECURITY_HEADERS });
    next();
  });
  app.use(takeLink());
  app.use(nameContentType());
  app.use(closePipelinedResponses());
  app.use(logRequests(api));
  app.use(limitBodyTime({ windowMs: api.config.LIMIT_BODY_SECONDS * 1_000 }));
  // Before anything else answers, a preflight too; after what lets the answer arrive while the body still comes.
  app.use((req, _res, next) => {
    refuseAmbiguous(req);
    next();
  });
  app.use(allowOrigins(api.config));
  app.use(disconnectStalledReaders());
  app.use((req, _res, next) => {
    if (req.originalUrl.length > MAX_ADDRESS_LENGTH) throw addressTooLong();
    next();
  });

  const routers = createRouters(api, files);
  app.use(routers.public);
  const identify = [authenticate(api), limitRequests(api.requestRates, api.config.LIMIT_REQUESTS)];
  // `/metrics` and all of `/admin`.
  app.use(
    routers.monitoring.operations.map(({ path }) => path.split('/', 2).join('/')),
    identify,
  );
  app.use(routers.monitoring);
  const operations = Router();
  operations.use('/tus', overrideMethod());
  operations.use(routers.login);
  operations.use(identify);
  operations.use(routers['raw-body']);
  operations.use(readBodies(api), authenticateLateBody(api));
  operations.use(routers['json-body']);
  app.use('/api', operations);
  app.use(operations);

  app.use(refuseUnknownPath);
  app.use(
    answerErrors(api.log, error =>
      error instanceof MissingObject
        ? explainMissingObject(api.database.db, api.objects, error)
        : undefined,
    ),
  );
  return app;
}
