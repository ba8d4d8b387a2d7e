import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { type Drop, type Dropped, readDropped } from '../service/dropped.ts';
import { DropProblem } from '../ui/drop-problem.tsx';
import { useStayOnDrop } from '../ui/use-stay-on-drop.ts';

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
  const [dropped, setDropped] = useState<Drop>();
  const read = async (data: DataTransfer) => {
    const found = await readDropped(data);
    setDropped(found);
    onDrop(found.files);
  };
  const hold = (by: 1 | -1) => {
    entered.current += by;
    setOver(entered.current > 0);
  };
  useStayOnDrop();
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
        if (event.dataTransfer) void read(event.dataTransfer);
      }}
    >
      {dropped && <DropProblem {...dropped} onClose={() => setDropped(undefined)} />}
      {children}
      {isOver && <p class="drop-over">Drop files here to send them to {folder}</p>}
    </div>
  );
}
