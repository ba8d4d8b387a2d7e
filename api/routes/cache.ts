import type { Router } from 'express';
import type { ApiContext } from '../context.ts';

/** A project's cache: named references to videos. */
export function routeCache(_router: Router, _api: ApiContext): void {}
