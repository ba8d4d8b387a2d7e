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
    write ? { write } : standardError(),
  );
}

/** Bytes of lines that are kept until they can be written, while they cannot, as on a full disk. */
const MAX_UNWRITTEN = 1 << 20;

function standardError() {
  const destination = pino.destination({ fd: 2, sync: true, maxLength: MAX_UNWRITTEN });
  // Every line is written at once where possible; for one that cannot be, the flush before an exit would wait for ever.
  destination.flushSync = () => {};
  // Without a listener it would end the process, and its work.
  return destination.on('error', () => {});
}
