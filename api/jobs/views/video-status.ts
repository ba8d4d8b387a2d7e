import { z } from 'zod';
import type { ErrorRecord } from '../../../shared/errors.ts';
import type { JobSummary } from './job-summary.ts';

export const statusRecord = z
  .object({
    ok: z.boolean(),
    ready: z.boolean(),
    message: z.string(),
    progress: z.number().optional(),
    returncode: z.number().int().optional().describe('For debugging.'),
    stderr: z.string().optional().describe('For debugging.'),
  })
  .meta({ id: 'VideoStatus' });

/** The columns that a status is made of. */
export type PolledVideo = Pick<JobSummary, 'state' | 'message' | 'progress' | 'error'> & {
  version: string | number;
};

/** Section 4.3 of the interface: `ok` and `message` always; `returncode` and `stderr` on failure alone, for debugging. */
export function videoStatus(row: PolledVideo) {
  const error = row.error as (ErrorRecord & { returncode?: number; stderr?: string }) | null;
  const { returncode, stderr } = error ?? {};
  switch (row.state) {
    case 'queued':
      return { ok: true, ready: false, message: 'Waiting for a worker.', progress: 0 };
    case 'running':
      return {
        ok: true,
        ready: false,
        message: row.message ?? 'Creating the video.',
        progress: row.progress ?? 0,
      };
    case 'succeeded':
      return { ok: true, ready: true, message: 'Video is ready.', progress: 1 };
    default:
      return {
        ok: false,
        ready: false,
        message: error?.detail ?? 'Video creation failed.',
        ...(returncode === undefined ? {} : { returncode }),
        ...(stderr === undefined ? {} : { stderr }),
      };
  }
}
