import type { Router } from 'express';
import type { ApiContext } from '../context.ts';

/** GET /metrics for Prometheus, for server administrators. */
export function routeMetrics(_router: Router, _api: ApiContext): void {}
