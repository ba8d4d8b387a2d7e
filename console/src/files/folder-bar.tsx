import { type Dropped, readChosen } from '../service/dropped.ts';
import { Button } from '../ui/button.tsx';
import { AgainIcon, VideoIcon } from '../ui/icons.tsx';
import { formatCount } from '../ui/numbers.ts';
import type { Listing } from './entries.ts';
import { findPattern } from './frame-pattern.ts';
import { isFrame } from './image-type.ts';

interface FolderBarProps {
  listing: Listing | undefined;
  /** How many entries are shown. */
  count: number | undefined;
  /** The host is asked for it, whether an earlier answer is shown or none. */
  isAsked: boolean;
  find: string;
  chosen: string | undefined;
  onFind: (text: string) => void;
  onLookAgain: () => void;
  onMake: (pattern: string) => void;
  onSend: (files: Dropped[]) => void;
}

/** What can be done in a folder: look for a name, look again, make a video of its frames, send files there. */
export function FolderBar(props: FolderBarProps) {
  const { listing, count, isAsked, find, chosen, onFind, onLookAgain, onMake, onSend } = props;
  return (
    <div class="files-bar">
      <input
        class="input"
        type="search"
        aria-label="A part of the name"
        placeholder="A part of the name"
        value={find}
        onInput={event => onFind(event.currentTarget.value)}
      />
      <span class="grow muted" role="status">
        {listing &&
          count !== undefined &&
          `${countOf(count, listing.names.length)}${isAsked ? ', looking again …' : ''}`}
      </span>
      <Button
        look="quiet"
        size="icon"
        aria-label="Look again"
        title="Look again"
        onClick={onLookAgain}
      >
        <AgainIcon />
      </Button>
      {listing?.names.some(isFrame) && (
        <Button onClick={() => onMake(suggestPattern(listing.names, chosen))}>
          <VideoIcon />
          Make a video
        </Button>
      )}
      <label class="button">
        <input
          class="visually-hidden"
          type="file"
          multiple
          onChange={event => {
            onSend(readChosen(event.currentTarget.files ?? []));
            event.currentTarget.value = '';
          }}
        />
        Send files
      </label>
    </div>
  );
}

/** The row of numbers to which a file belongs; else the first that is here; else all of its kind. */
function suggestPattern(names: string[], chosen: string | undefined): string {
  const first = names.find(isFrame) ?? '';
  for (const name of [chosen ?? '', first]) {
    const pattern = isFrame(name) ? findPattern(name, names) : undefined;
    if (pattern !== undefined) return pattern;
  }
  return `*${/\.[^.]+$/.exec(first)?.[0] ?? ''}`;
}

function countOf(shown: number, all: number): string {
  const total = `${formatCount(all)} ${all === 1 ? 'entry' : 'entries'}`;
  return shown === all ? total : `${formatCount(shown)} of ${total}`;
}
