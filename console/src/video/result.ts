import type { Job } from '../service/jobs.ts';
import type { Tiles } from './tiles.ts';

/** A frame that cannot be used. */
export interface NamedFrame {
  index: number;
  path: string;
  reason: string;
}

export interface BadFrames {
  /** The first hundred. */
  frames: NamedFrame[];
  count: number;
}

/** What a job of a video came to. */
export interface VideoResult {
  type: string;
  bytes: number;
  frames: number;
  encoded: 'host' | 'worker';
  skipped?: NamedFrame[];
  skippedCount?: number;
  /** Where the pattern ended though more frames follow. */
  gap?: { path: string; after: number };
  /** Why the project's cache has not got it. */
  uncached?: string;
  tiles?: Tiles;
}

export function readVideo({ kind, state, result }: Job): VideoResult | undefined {
  const isThere = kind === 'video' && state === 'succeeded';
  return isThere ? (result as unknown as VideoResult) : undefined;
}

/** How many bad frames the detail of an error names. */
const NAMED = 3;

/** The bad frames of a video that failed, where its error does not name all of them. */
export function readBadFrames({ kind, error }: Job): BadFrames | undefined {
  if (kind !== 'video' || error?.code !== 'bad_frames') return undefined;
  const { frames, count } = error as unknown as BadFrames;
  return count > NAMED ? { frames, count } : undefined;
}
