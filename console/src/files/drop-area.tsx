import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Dropped, readDropped } from '../ui/dropped.ts';
import { Unread } from '../ui/unread.tsx';

interface DropAreaProps {
  folder: string;
  onDrop: (files: Dropped[]) => void;
  children: ComponentChildren;
}

/** Takes files that are dropped, and says so while they are held over it. */
export function DropArea({ folder, onDrop, children }: DropAreaProps) {
  // Each part that is passed is entered, and then the one before left.
  const entered = useRef(0);
  const [isOver, setOver] = useState(false);
  const [unread, setUnread] = useState<string[]>([]);
  const hold = (by: 1 | -1) => {
    entered.current += by;
    setOver(entered.current > 0);
  };
  useEffect(() => {
    // Beside it a browser would open the file, and leave the page.
    const stay = (event: Event) => event.preventDefault();
    for (const type of ['dragover', 'drop']) addEventListener(type, stay);
    return () => {
      for (const type of ['dragover', 'drop']) removeEventListener(type, stay);
    };
  }, []);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: files can be chosen by a button, too.
    <div
      class="card drop"
      onDragEnter={() => hold(1)}
      onDragLeave={() => hold(-1)}
      onDrop={event => {
        event.preventDefault();
        entered.current = 0;
        setOver(false);
        if (!event.dataTransfer) return;
        void readDropped(event.dataTransfer).then(({ files, unread: left }) => {
          setUnread(left);
          if (files.length > 0) onDrop(files);
        });
      }}
    >
      <Unread paths={unread} onClose={() => setUnread([])} />
      {children}
      {isOver && <p class="drop-over">Drop files here to send them to {folder}</p>}
    </div>
  );
}
