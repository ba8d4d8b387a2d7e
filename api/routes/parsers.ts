import type { Router } from 'express';
import type { ApiContext } from '../context.ts';

/** What uploads can be parsed by. */
export function routeParsers(_router: Router, _api: ApiContext): void {}
