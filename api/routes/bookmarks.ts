import type { Router } from 'express';
import type { ApiContext } from '../context.ts';

/** Client state, kept byte for byte under an id. */
export function routeBookmarks(_router: Router, _api: ApiContext): void {}
