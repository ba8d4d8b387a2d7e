import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { collectMetrics } from '../monitoring/collect-metrics.ts';
import { operation } from '../openapi/operation.ts';

/** GET /metrics for Prometheus, for server administrators. */
export default routes('monitoring', (router, api) => {
  const { metrics } = api;
  // Concurrent requests share one collection.
  let pending: Promise<string> | undefined;
  resource(router, '/metrics', {
    get: operation({
      id: 'collectMetrics',
      topic: 'operations',
      summary: 'Numbers for Prometheus',
      for: 'administrators',
      answers: { 200: { means: 'In its text format.', types: ['text/plain'] } },
      handle: async ({ res }) => {
        pending ??= collectMetrics(api).finally(() => {
          pending = undefined;
        });
        res.set('Cache-Control', 'no-store').set('Content-Type', metrics.registry.contentType);
        res.send(await pending);
      },
    }),
  });
});
