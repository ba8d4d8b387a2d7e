import type { Router } from 'express';
import type { ApiContext } from '../context.ts';

/** Cookie sessions: begun with a password, ended by DELETE /logout. Login needs no credentials. */
export function routeLogin(_router: Router, _api: ApiContext): void {}
