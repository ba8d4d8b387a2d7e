import { useRef, useState } from 'preact/hooks';
import { readCommands } from '../service/command-history.ts';
import { AgainIcon } from '../ui/icons.tsx';

/** The commands that this browser's user ran, to be chosen from. */
export function EarlierCommands({ onChoose }: { onChoose: (command: string) => void }) {
  const details = useRef<HTMLDetailsElement>(null);
  const [commands, setCommands] = useState(readCommands);
  const close = () => {
    if (details.current) details.current.open = false;
  };
  return (
    <details
      class="earlier"
      ref={details}
      onToggle={() => setCommands(readCommands())}
      onKeyDown={event => {
        if (event.key !== 'Escape' || !details.current?.open) return;
        close();
        details.current.querySelector('summary')?.focus();
      }}
    >
      <summary class="button" data-size="small">
        <AgainIcon />
        History
      </summary>
      <div class="popup">
        {commands.length === 0 && (
          <p class="muted">
            Commands that you run here are kept in this browser, up to the logout.
          </p>
        )}
        <ol>
          {commands.map(command => (
            <li key={command}>
              <button
                type="button"
                class="mono ellipsis"
                title={command}
                onClick={() => {
                  close();
                  onChoose(command);
                }}
              >
                {command}
              </button>
            </li>
          ))}
        </ol>
      </div>
    </details>
  );
}
