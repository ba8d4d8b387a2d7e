import type { Request } from 'express';
import { collectDefaultMetrics, type Registry } from 'prom-client';
import type { ErrorCode } from '../../shared/errors/errors.ts';
import { API_METRICS, createMetrics } from '../../shared/process/metrics.ts';

/** prom-client's default of 10 ms would wake an idle process a hundred times a second. */
const LAG_RESOLUTION_MS = 100;
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']);
/** Requests handled by middleware, which set no route. */
const WITHOUT_ROUTE: [RegExp, string][] = [
  [/^\/admin\/queues(?![^/?])/, '/admin/queues'],
  [/^(\/api)?\/events(?![^/?])/, '/events/*event'],
];

/** `code`: of the problem, where the answer is 5xx. */
type Answered = { status: number; code?: ErrorCode | undefined };
type RoutedRequest = Pick<Request, 'method' | 'originalUrl' | 'route'>;

/** The metrics of this API process, with prom-client's default ones. */
export class ApiMetrics {
  readonly registry: Registry;
  readonly #metrics;

  constructor() {
    const { registry, metrics } = createMetrics(API_METRICS);
    this.registry = registry;
    this.#metrics = metrics;
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_RESOLUTION_MS });
  }

  recordRequest(req: RoutedRequest, { status, code }: Answered, seconds: number): void {
    const labels = {
      method: METHODS.has(req.method) ? req.method : 'other',
      route: routeOf(req),
      status: `${Math.floor(status / 100)}xx`,
    };
    this.#metrics.windlass_http_requests_total.inc({ ...labels, code: code ?? '' });
    this.#metrics.windlass_http_request_duration_seconds.observe(labels, seconds);
  }

  get gauges() {
    return this.#metrics;
  }
}

/** The pattern of the request's route, without the prefix. Never the path itself, which clients choose. */
function routeOf(req: RoutedRequest): string {
  for (const [path, route] of WITHOUT_ROUTE) if (path.test(req.originalUrl)) return route;
  const path: unknown = req.route?.path;
  return typeof path === 'string' ? path : path === undefined ? 'none' : String(path);
}
