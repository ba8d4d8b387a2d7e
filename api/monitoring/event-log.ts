import { pino } from 'pino';
import { LineWriter } from '../../shared/process/line-writer.ts';
import type { Config } from '../../shared/settings/config.ts';

interface EventLine {
  event: { user: string; path: string; query: string };
  requestId: string | undefined;
}

/** A log of its own on stdout: every LOG_LEVEL but `silent` writes events. Tells whether a line was not lost. */
export function createEventLog(
  { config }: { config: Pick<Config, 'LOG_LEVEL'> },
  fd = 1,
): (line: EventLine) => boolean {
  const writer = new LineWriter(fd);
  let isTaken = true;
  const events = pino(
    {
      level: config.LOG_LEVEL === 'silent' ? 'silent' : 'info',
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
    },
    {
      write: text => {
        isTaken = writer.write(text);
      },
    },
  );
  return line => {
    events.info(line);
    return isTaken;
  };
}
