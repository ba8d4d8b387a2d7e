import { randomUUID } from 'node:crypto';
import express, { type Express } from 'express';
import type { ApiContext } from './context.ts';
import { addressTooLong, hostMissing, MAX_ADDRESS_LENGTH } from './http/client-errors.ts';
import { createRouter } from './http/resource.ts';
import { authenticate } from './middleware/authenticate.ts';
import { closePipelinedResponses } from './middleware/close-pipelined-responses.ts';
import { disconnectStalledReaders } from './middleware/disconnect-stalled-readers.ts';
import { answerErrors, notFound } from './middleware/errors.ts';
import { limitBodyTime } from './middleware/limit-body-time.ts';
import { limitRequests } from './middleware/limit-requests.ts';
import { logRequests } from './middleware/log-requests.ts';
import { readJson } from './middleware/read-json.ts';
import { routeBookmarks } from './routes/bookmarks.ts';
import { routeBrowse } from './routes/browse.ts';
import { routeCache } from './routes/cache.ts';
import { routeDescription } from './routes/description.ts';
import { EVENTS, recordEvents } from './routes/events.ts';
import { routeFiles } from './routes/files.ts';
import { routeHosts } from './routes/hosts.ts';
import { routeJobs } from './routes/jobs.ts';
import { routeLaunch } from './routes/launch.ts';
import { routeLogin, routeLogout } from './routes/login.ts';
import { routeMetrics } from './routes/metrics.ts';
import { routeModels } from './routes/models.ts';
import { routeParameters } from './routes/parameters.ts';
import { routeParsers } from './routes/parsers.ts';
import { routeParts } from './routes/parts.ts';
import { routeProjects } from './routes/projects.ts';
import { routeQueues } from './routes/queues.ts';
import { routeRemoteFile } from './routes/remote-file.ts';
import { routeRemotes } from './routes/remotes.ts';
import { routeService } from './routes/service.ts';
import { routeTables } from './routes/tables.ts';
import { routeTokens } from './routes/tokens.ts';
import { routeUploads } from './routes/uploads.ts';
import { routeUsers } from './routes/users.ts';
import { routeVideos } from './routes/videos.ts';

/** The HTTP service: thin; what takes longer than a request becomes a job. */
export function createApp(api: ApiContext): Express {
  const app = express();
  app
    .disable('x-powered-by')
    .disable('etag')
    .set('trust proxy', api.config.TRUST_PROXY)
    .set('query parser', 'simple');
  app.use((req, res, next) => {
    const given = req.get('X-Request-Id');
    res.locals.requestId = given && /^[\w.:-]{1,128}$/.test(given) ? given : randomUUID();
    res
      .set('X-Request-Id', res.locals.requestId)
      .set('X-Content-Type-Options', 'nosniff')
      // Not `no-referrer`: with it a form of our own page sends `Origin: null` (Fetch, 3.2), and no Referer.
      .set('Referrer-Policy', 'same-origin');
    next();
  });
  app.use(closePipelinedResponses());
  app.use(logRequests(api));
  app.use(disconnectStalledReaders());
  app.use(limitBodyTime({ windowMs: api.config.LIMIT_BODY_SECONDS * 1_000 }));
  app.use((req, _res, next) => {
    if (req.originalUrl.length > MAX_ADDRESS_LENGTH) throw addressTooLong();
    if (req.headers.host === undefined && req.httpVersion === '1.1') throw hostMissing();
    next();
  });

  const open = createRouter();
  routeService(open, api);
  app.use(open);

  const identify = [authenticate(api), limitRequests(api.config.LIMIT_REQUESTS)];
  // Both once, without the prefix.
  const administration = createRouter();
  routeMetrics(administration, api);
  routeQueues(administration, api);
  app.use(['/metrics', '/admin'], identify);
  app.use(administration);

  const operations = createRouter();
  routeLogin(operations, api);
  operations.use(identify, recordEvents(api));
  operations.operations.push(EVENTS);
  // These read their bodies themselves.
  routeParameters(operations, api);
  routeBookmarks(operations, api);
  routeParts(operations, api);
  operations.use(readJson(api.config));
  // Before /remotes/:sid, which would take "launch" for a session.
  routeLaunch(operations, api);
  routeRemotes(operations, api);
  routeBrowse(operations, api);
  routeRemoteFile(operations, api);
  routeVideos(operations, api);
  routeJobs(operations, api);
  routeHosts(operations, api);
  routeLogout(operations, api);
  routeTokens(operations, api);
  routeUsers(operations, api);
  routeProjects(operations, api);
  routeCache(operations, api);
  routeModels(operations, api);
  routeTables(operations, api);
  routeFiles(operations, api);
  routeUploads(operations, api);
  routeParsers(operations, api);
  // Known without credentials.
  const description = createRouter();
  routeDescription(description, [
    { prefix: '', operations: [...open.operations, ...administration.operations] },
    { prefix: '/api', operations: operations.operations },
  ]);
  app.use(description);
  app.use('/api', operations);
  app.use(operations);

  app.use(notFound);
  app.use(answerErrors(api.log));
  return app;
}
