import { z } from 'zod';
import { jobErrorRecord } from '../../../shared/jobs/job-record.ts';
import { JOB_STATES } from '../../../shared/jobs/job-states.ts';
import { OUTPUT_STREAMS } from '../../../shared/jobs/output.ts';

const stateChange = z
  .object({
    state: z.enum(JOB_STATES),
    message: z.string().optional().describe('Why a job without progress waits.'),
    error: jobErrorRecord.optional(),
  })
  .meta({ id: 'JobStateChange' });
const progress = z
  .object({ progress: z.number().min(0).max(1), message: z.string().optional() })
  .meta({ id: 'JobProgress' });
const output = z
  .object({
    stream: z.enum(OUTPUT_STREAMS),
    offset: z.number().int().min(0).describe('Of its first byte in the stream.'),
    time: z.iso
      .datetime()
      .optional()
      .describe('When its first byte was stored, to the second; not told of what 0.1.0 stored.'),
    text: z.string().optional(),
    base64: z.string().optional().describe('Instead of `text`, where the bytes are not UTF-8.'),
  })
  .meta({ id: 'JobOutput' });
const end = z.object({}).meta({ id: 'JobEnd' });

const id = z.string().describe('Sent as Last-Event-ID, the stream goes on after it.');
const eventOf = <T extends z.ZodType>(name: string, event: string, data: T) =>
  z.object({ event: z.literal(event), id, data }).meta({ id: name });

/** The events of a job's stream: `data` is the JSON in the event's field of that name. */
export const jobEvent = z
  .discriminatedUnion('event', [
    eventOf('JobStateEvent', 'state', stateChange),
    eventOf('JobProgressEvent', 'progress', progress),
    eventOf('JobOutputEvent', 'output', output),
    eventOf('JobEndEvent', 'end', end),
  ])
  .meta({ id: 'JobEvent', description: "One event of a job's stream." });
