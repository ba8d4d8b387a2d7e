import type { Router } from 'express';
import type { ApiContext } from '../context.ts';

/** Parts of an upload, streamed into the object store. */
export function routeParts(_router: Router, _api: ApiContext): void {}
