import type { TargetedSubmitEvent } from 'preact';
import { useState } from 'preact/hooks';
import { Button } from '../ui/button.tsx';
import { ClockIcon } from '../ui/icons.tsx';
import type { OutputLog } from './output-log.ts';

/** Goes to the first line that came at a time or later. */
export function TimeBox({ log, onShow }: { log: OutputLog; onShow: (line: number) => void }) {
  const [missed, setMissed] = useState(false);
  const first = log.lineCount > 0 ? log.timeOf(0) : undefined;
  if (first === undefined) return null;
  const last = log.timeOf(log.lineCount - 1) ?? first;
  const onSubmit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget).get('time');
    const line = log.lineAt(new Date(String(given)).getTime());
    setMissed(line === undefined);
    if (line !== undefined) onShow(line);
  };
  return (
    <details class="log-time">
      <summary class="button" data-size="small" title="Go to the lines of a time">
        <ClockIcon />
        Time
      </summary>
      <form class="log-time-form" onSubmit={onSubmit}>
        <label class="field">
          <span>Lines from this time on</span>
          <input
            class="input"
            type="datetime-local"
            name="time"
            step="1"
            required
            defaultValue={toLocal(first)}
            min={toLocal(first)}
            max={toLocal(last)}
          />
        </label>
        <Button size="small" type="submit">
          Go
        </Button>
        <p class="muted" role="status">
          {missed && 'Nothing came since then.'}
        </p>
      </form>
    </details>
  );
}

/** As the field of a local time has it, to the second. */
function toLocal(time: number): string {
  const zone = new Date(time).getTimezoneOffset() * 60_000;
  return new Date(time - zone).toISOString().slice(0, 19);
}
