import { type Logger, pino } from 'pino';
import { createScrubber, redact } from '../secrets/redact.ts';

export type { Logger };

interface LogOptions {
  level: string;
  name: string;
  /** Values to remove from every line: listSecrets() of the settings. */
  secrets?: readonly string[];
  /** Default: standard error. */
  write?: (line: string) => void;
}

/**
 * The process's log: JSON lines on standard error, so that standard output is for people and scripts. Removes secrets: see
 * redact.ts.
 */
export function createLog({ level, name, secrets = [], write }: LogOptions): Logger {
  return pino(
    {
      level,
      base: { name, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { log: fields => redact(fields) as Record<string, unknown> },
      // redact() has made errors plain objects; pino's serializer would copy all their properties.
      serializers: { err: (value: unknown) => value },
      hooks: { streamWrite: createScrubber(secrets) },
    },
    write ? { write } : pino.destination({ fd: 2, sync: true }),
  );
}
