import { setFlagsFromString } from 'node:v8';
import { openService } from '../shared/service/open-service.ts';
import { ROUTES } from './all-routes.ts';
import { createApp } from './app.ts';
import { createContext } from './create-context.ts';
import { drain, listen } from './listen.ts';

/**
 * V8 lets a heap of 40 MB grow by a third before it marks it again: under load every 3 s, each of which costs the event
 * loop 0.1 s. Twice the size takes 25 MB (docs/performance.md). V8 reads the flag after each collection.
 */
setFlagsFromString('--heap-growing-percent=100');

const service = await openService({
  title: 'windlass-api',
  logName: 'api',
  requires: ['SECRET_KEY', 'SEAL_PUBLIC_KEY'],
  database: { max: 20 },
});
const context = createContext(service.context, service.environment);
const server = await listen(createApp(context, ROUTES), context);
const { HOST: host, PORT: port } = context.config;
context.log.info({ host, port }, 'the API is ready');
service.life.ready();

await service.life.stopped;
await drain(server);
context.jobWatch.close();
await service.close(context.events.end(context.log));
