import { type Logger, pino } from 'pino';
import { createScrubber, redact } from './redact.ts';

export type { Logger };

export interface LogOptions {
  level: string;
  name: string;
  /** Values that must never be written, wherever they turn up: listSecrets() of the settings. */
  secrets?: readonly string[];
  /** Where the lines go; standard error. */
  write?: (line: string) => void;
}

/**
 * The process's log: JSON lines on standard error, so that standard output is for people and scripts. Secrets are cut
 * out by name, by shape and by value; see redact.ts.
 */
export function createLog({ level, name, secrets = [], write }: LogOptions): Logger {
  return pino(
    {
      level,
      base: { name, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { log: fields => redact(fields) as Record<string, unknown> },
      // Errors are plain objects by then; pino's own serializer would copy all that they carry.
      serializers: { err: (value: unknown) => value },
      hooks: { streamWrite: createScrubber(secrets) },
    },
    write ? { write } : pino.destination({ fd: 2, sync: true }),
  );
}
