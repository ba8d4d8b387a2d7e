import { z } from 'zod';
import type { StoredError } from '../../../shared/errors/errors.ts';
import type { Result } from '../../../shared/jobs/catalog.ts';
import type { JobSummary } from '../../../shared/jobs/job-record.ts';
import { frameGap, skippedFrame } from '../../../shared/jobs/payloads/video.ts';

const PHASES = ['queued', 'checking', 'encoding', 'storing', 'ready', 'failed'] as const;
type Phase = (typeof PHASES)[number];

export const statusRecord = z
  .object({
    ok: z.boolean(),
    ready: z.boolean(),
    phase: z.enum(PHASES).describe('The message begins with this word.'),
    message: z.string(),
    progress: z.number().optional(),
    returncode: z.number().int().optional().describe('For debugging.'),
    stderr: z.string().optional().describe('For debugging.'),
    skipped: z
      .array(skippedFrame)
      .optional()
      .describe('Frames that were left out, the first hundred.'),
    skippedCount: z.number().int().optional().describe('How many were left out.'),
    gap: frameGap
      .optional()
      .describe('Where the pattern ended, without `last`, though more frames follow.'),
    uncached: z.string().optional().describe('Why the cache of the project has not got it.'),
  })
  .meta({ id: 'VideoStatus' });

/** The columns that a status is made of. */
export type PolledVideo = Pick<
  JobSummary,
  'state' | 'message' | 'progress' | 'error' | 'result'
> & {
  version: string | number;
};

/** Section 4.3 of the interface: `ok` and `message` always; `returncode` and `stderr` on failure alone, for debugging. */
export function videoStatus(row: PolledVideo): z.output<typeof statusRecord> {
  const { returncode, stderr }: Partial<StoredError> = row.error ?? {};
  const working = { ok: true, ready: false };
  switch (row.state) {
    case 'queued':
      return { ...working, phase: 'queued', message: 'queued: waiting for a worker', progress: 0 };
    case 'running': {
      const message = row.message ?? 'checking frames';
      return { ...working, phase: phaseOf(message), message, progress: row.progress ?? 0 };
    }
    case 'succeeded': {
      const { skipped, skippedCount, gap, uncached } = (row.result ?? {}) as Partial<
        Result<'video'>
      >;
      return {
        ok: true,
        ready: true,
        phase: 'ready',
        message: 'ready',
        progress: 1,
        ...(skipped ? { skipped, skippedCount } : {}),
        ...(gap ? { gap } : {}),
        ...(uncached === undefined ? {} : { uncached }),
      };
    }
    default:
      return {
        ok: false,
        ready: false,
        phase: 'failed',
        message: failureOf(row),
        ...(typeof returncode === 'number' ? { returncode } : {}),
        ...(typeof stderr === 'string' ? { stderr } : {}),
      };
  }
}

/** What a status says of a video that there will not be. */
export function failureOf({ error }: Pick<JobSummary, 'error'>): string {
  return `failed: ${error?.detail ?? 'Video creation failed.'}`;
}

/**
 * The handler's messages begin with the phase; before other messages, such as that of a reconnect, it is the first
 * phase.
 */
const phaseOf = (message: string): Phase =>
  PHASES.find(phase => message.startsWith(phase)) ?? 'checking';
