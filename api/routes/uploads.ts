import type { Router } from 'express';
import type { ApiContext } from '../context.ts';

/** Upload sessions: made, looked at, finished, given up. */
export function routeUploads(_router: Router, _api: ApiContext): void {}
