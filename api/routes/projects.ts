import type { Router } from 'express';
import type { ApiContext } from '../context.ts';

/** Projects: named folders of models with an access list. */
export function routeProjects(_router: Router, _api: ApiContext): void {}
