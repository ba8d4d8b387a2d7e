import type { Router } from 'express';
import type { ApiContext } from '../context.ts';

/** Named values of a model, kept byte for byte. */
export function routeParameters(_router: Router, _api: ApiContext): void {}
