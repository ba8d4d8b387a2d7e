import type { Router } from 'express';
import type { ApiContext } from '../context.ts';

/** Table artifacts: metadata, pages of rows, histograms, the Parquet itself. */
export function routeTables(_router: Router, _api: ApiContext): void {}
