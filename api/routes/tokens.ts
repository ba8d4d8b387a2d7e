import type { Router } from 'express';
import type { ApiContext } from '../context.ts';

/** API tokens of whoever asks. */
export function routeTokens(_router: Router, _api: ApiContext): void {}
