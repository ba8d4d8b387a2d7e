import type { Router } from 'express';
import type { ApiContext } from '../context.ts';

/** Bull Board at /admin/queues, read-only, for server administrators. */
export function routeQueues(_router: Router, _api: ApiContext): void {}
