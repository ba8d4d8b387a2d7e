import type { TargetedSubmitEvent } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { Button } from '../ui/button.tsx';
import { ClockIcon } from '../ui/icons.tsx';
import type { OutputLog } from './output-log.ts';

interface GoToBoxProps {
  log: OutputLog;
  line: number | undefined;
  /** Marks the line, and leads the keys to it. */
  onShow: (line: number) => void;
}

/** Goes to a line by its number, or to the first that came at a time or later. */
export function GoToBox({ log, line, onShow }: GoToBoxProps) {
  const details = useRef<HTMLDetailsElement>(null);
  const [missed, setMissed] = useState('');
  if (log.lineCount === 0) return null;
  const first = log.timeOf(0);
  const go = (found: number | undefined, otherwise: string) => {
    setMissed(found === undefined ? otherwise : '');
    if (found === undefined) return;
    if (details.current) details.current.open = false;
    onShow(found);
  };
  const valueIn = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    return String(new FormData(event.currentTarget).get('to'));
  };
  return (
    <details
      class="log-time"
      ref={details}
      onKeyDown={event => {
        if (event.key !== 'Escape' || !details.current?.open) return;
        details.current.open = false;
        details.current.querySelector('summary')?.focus();
      }}
    >
      <summary class="button" data-size="small" title="Go to a line, or to the lines of a time">
        <ClockIcon />
        Go to
      </summary>
      <div class="log-time-forms popup">
        <form onSubmit={event => go(Number(valueIn(event)) - 1, '')}>
          <label class="field">
            <span>Line</span>
            <input
              class="input"
              type="number"
              name="to"
              required
              min={1}
              max={log.lineCount}
              defaultValue={line === undefined ? '' : String(line + 1)}
            />
          </label>
          <Button size="small" type="submit">
            Go
          </Button>
        </form>
        {first !== undefined && (
          <form
            onSubmit={event =>
              go(log.lineAt(new Date(valueIn(event)).getTime()), 'Nothing came since then.')
            }
          >
            <label class="field">
              <span>Lines from this time on</span>
              <input
                class="input"
                type="datetime-local"
                name="to"
                step="1"
                required
                defaultValue={toLocal(first)}
                min={toLocal(first)}
                max={toLocal(log.timeOf(log.lineCount - 1) ?? first)}
              />
            </label>
            <Button size="small" type="submit">
              Go
            </Button>
          </form>
        )}
        <p class="muted" role="status">
          {missed}
        </p>
      </div>
    </details>
  );
}

/** As the field of a local time has it, to the second. */
function toLocal(time: number): string {
  const zone = new Date(time).getTimezoneOffset() * 60_000;
  return new Date(time - zone).toISOString().slice(0, 19);
}
