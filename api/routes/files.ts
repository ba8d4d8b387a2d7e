import type { Router } from 'express';
import type { ApiContext } from '../context.ts';

/** File artifacts, by range. */
export function routeFiles(_router: Router, _api: ApiContext): void {}
