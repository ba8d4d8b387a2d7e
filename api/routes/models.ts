import type { Router } from 'express';
import type { ApiContext } from '../context.ts';

/** Models of a project, with the list of what they hold. */
export function routeModels(_router: Router, _api: ApiContext): void {}
