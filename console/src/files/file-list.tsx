import type { TargetedKeyboardEvent } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { formatBytes } from '../ui/format-bytes.ts';
import { FileIcon, FolderIcon } from '../ui/icons.tsx';
import { VirtualRows } from '../ui/virtual-rows.tsx';
import { type Entry, entryAt, type Listing } from './entries.ts';

interface FileListProps {
  listing: Listing;
  /** Positions in it, in the order in which they are shown. */
  shown: Uint32Array;
  chosen: string | undefined;
  /** The name at which the keys begin. */
  startAt: string | undefined;
  takesFocus: boolean;
  onShown: () => void;
  /** What they are sorted and chosen by: another one is looked at from its beginning. */
  view: string;
  onOpen: (entry: Entry) => void;
  onUp: () => void;
}

/** px, as files.css has it. */
const ROW = 34;
const PAGE = 15;
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const inUtc = (time: string) => `${time.replace('T', ' ').replace(/(\.\d+)?Z$/, '')} UTC`;

/** The entries of a directory. Arrows and letters choose one, Enter opens it, Backspace goes up. */
export function FileList(props: FileListProps) {
  const { listing, shown, chosen, startAt, takesFocus, onShown, view, onOpen, onUp } = props;
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  const [at, setAt] = useState(() => positionOf(startAt, listing, shown));
  const entryOf = (n: number) => entryAt(listing, shown[n] ?? 0);
  const go = (to: number) => {
    const next = Math.max(0, Math.min(shown.length - 1, to));
    setAt(next);
    if (box.current) reveal(box.current, next);
  };
  useLayoutEffect(() => {
    if (box.current) reveal(box.current, at);
    if (takesFocus) box.current?.focus({ preventScroll: true });
    onShown();
    // Where it begins: later the keys move it.
  }, []);
  const seen = useRef(view);
  useEffect(() => {
    if (seen.current !== view) go(0);
    seen.current = view;
  }, [view]);
  // The list may have become shorter.
  const present = Math.min(at, shown.length - 1);
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLDivElement>) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves: Record<string, number> = {
      ArrowDown: present + 1,
      ArrowUp: present - 1,
      PageDown: present + PAGE,
      PageUp: present - PAGE,
      Home: 0,
      End: shown.length - 1,
    };
    const to = moves[event.key] ?? nextWith(event.key, listing, shown, present);
    if (to !== undefined) go(to);
    else if (event.key === 'Enter') onOpen(entryOf(present));
    else if (event.key === 'Backspace') onUp();
    else return;
    event.preventDefault();
  };
  return (
    <div
      class="file-list"
      ref={box}
      role="listbox"
      aria-label="Files and folders"
      aria-activedescendant={`${id}-${present}`}
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <VirtualRows
        scroller={box}
        count={shown.length}
        rowHeight={ROW}
        keep={present}
        row={n => {
          const { name, isFolder, size, time } = entryOf(n);
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the list takes the keys.
            <div
              key={n}
              id={`${id}-${n}`}
              role="option"
              class="file"
              tabIndex={-1}
              aria-selected={name === chosen}
              aria-posinset={n + 1}
              aria-setsize={shown.length}
              data-at={n === present}
              onClick={() => {
                setAt(n);
                onOpen(entryOf(n));
              }}
            >
              {isFolder ? <FolderIcon /> : <FileIcon />}
              <span class="file-name ellipsis" title={name}>
                {name}
              </span>
              <span class="file-size">{isFolder ? 'folder' : formatBytes(size)}</span>
              <span class="file-time" title={inUtc(time)}>
                {exact.format(new Date(time))}
              </span>
            </div>
          );
        }}
      />
    </div>
  );
}

function positionOf(name: string | undefined, { names }: Listing, shown: Uint32Array): number {
  return name === undefined ? 0 : Math.max(0, shown.indexOf(names.indexOf(name)));
}

/** The next entry whose name begins with a letter that was typed. */
function nextWith(key: string, { names }: Listing, shown: Uint32Array, at: number) {
  if (key.length !== 1 || key === ' ') return undefined;
  const letter = key.toLowerCase();
  for (let n = 1; n <= shown.length; n++) {
    const to = (at + n) % shown.length;
    if (names[shown[to] ?? 0]?.toLowerCase().startsWith(letter)) return to;
  }
  return undefined;
}

function reveal(box: HTMLElement, row: number): void {
  if (row * ROW < box.scrollTop) box.scrollTop = row * ROW;
  const end = (row + 1) * ROW - box.clientHeight;
  if (end > box.scrollTop) box.scrollTop = end;
}
