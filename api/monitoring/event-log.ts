import { type Logger, pino } from 'pino';
import { LineWriter } from '../../shared/process/line-writer.ts';
import type { Config } from '../../shared/settings/config.ts';

/** How long a process that stops waits for a reader of its events. */
const END_MS = 2_000;

interface EventLine {
  event: { user: string; path: string; query: string };
  requestId: string | undefined;
}

/** A log of its own on stdout: every LOG_LEVEL but `silent` writes events. */
export class EventLog {
  readonly #writer: LineWriter;
  readonly #events: Logger;
  #isTaken = true;

  constructor({ LOG_LEVEL }: Pick<Config, 'LOG_LEVEL'>, fd = 1) {
    this.#writer = new LineWriter(fd);
    this.#events = pino(
      {
        level: LOG_LEVEL === 'silent' ? 'silent' : 'info',
        base: undefined,
        timestamp: pino.stdTimeFunctions.isoTime,
      },
      {
        write: text => {
          this.#isTaken = this.#writer.write(text);
        },
      },
    );
  }

  /** Whether the line is not lost. */
  record(line: EventLine): boolean {
    this.#events.info(line);
    return this.#isTaken;
  }

  /** Writes what still waits for a reader. Those who sent it were answered that it is recorded. */
  async end(log: Logger): Promise<void> {
    const lost = await this.#writer.end(END_MS);
    if (lost > 0) log.warn({ lost }, 'client events are lost: standard output takes no more lines');
  }
}
