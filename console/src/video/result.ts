import type { Job } from '../service/jobs.ts';
import type { Tiles } from './tiles.ts';

/** What a job of a video came to. */
export interface VideoResult {
  type: string;
  bytes: number;
  frames: number;
  encoded: 'host' | 'worker';
  skipped?: { index: number; path: string; reason: string }[];
  skippedCount?: number;
  tiles?: Tiles;
}

export function readVideo({ kind, state, result }: Job): VideoResult | undefined {
  const isThere = kind === 'video' && state === 'succeeded';
  return isThere ? (result as unknown as VideoResult) : undefined;
}
