import type { TargetedKeyboardEvent } from 'preact';
import { Button } from '../ui/button.tsx';
import { DownIcon, UpIcon } from '../ui/icons.tsx';
import { formatCount } from '../ui/numbers.ts';
import { MAX_MATCHES } from './find-lines.ts';
import type { Find } from './use-find.ts';

/** Finds a text in the log: Enter goes to the next line that has it, with Shift to the one before. */
export function FindBox({
  find,
  onShow,
}: {
  find: Find;
  onShow: (line: number | undefined) => void;
}) {
  const { query, setQuery, count, at, go } = find;
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLInputElement>) => {
    if (event.key === 'Enter') onShow(go(event.shiftKey ? -1 : 1));
    else if (event.key === 'Escape') setQuery('');
    else return;
    event.preventDefault();
  };
  return (
    <search class="find">
      <input
        class="input"
        type="search"
        placeholder="Find"
        aria-label="Find in the output"
        value={query}
        onInput={event => setQuery(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {query !== '' && (
        <>
          <span class="find-count" role="status">
            {describe(count, at)}
          </span>
          <Button
            look="quiet"
            size="icon"
            aria-label="The match before"
            disabled={count === 0}
            repeats
            onClick={() => onShow(go(-1))}
          >
            <UpIcon />
          </Button>
          <Button
            look="quiet"
            size="icon"
            aria-label="The next match"
            disabled={count === 0}
            repeats
            onClick={() => onShow(go(1))}
          >
            <DownIcon />
          </Button>
        </>
      )}
    </search>
  );
}

function describe(count: number, at: number | undefined): string {
  if (count === 0) return 'none';
  const all = `${formatCount(count)}${count >= MAX_MATCHES ? '+' : ''}`;
  return at === undefined ? all : `${formatCount(at + 1)} of ${all}`;
}
