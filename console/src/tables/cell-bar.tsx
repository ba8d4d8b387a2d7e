import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { type Value, valueText } from '../service/tables.ts';
import { Button } from '../ui/button.tsx';
import { CopyText } from '../ui/copy-text.tsx';
import { CloseIcon } from '../ui/icons.tsx';
import { formatCount } from '../ui/numbers.ts';
import type { CellPlace } from './use-chosen-cell.ts';

interface CellBarProps {
  cell: CellPlace;
  column: string;
  /** Undefined while it is not there. */
  value: Value | undefined;
  /** Where the keys are that copy it. */
  grid: RefObject<HTMLElement>;
  onClose: () => void;
}

/** The whole value of a cell, to be read and copied. */
export function CellBar({ cell, column, value: known, grid, onClose }: CellBarProps) {
  // Rows that are far away are forgotten.
  const last = useRef({ cell, value: known });
  if (last.current.cell !== cell || known !== undefined) last.current = { cell, value: known };
  const { value } = last.current;
  const text = value === undefined || value === null ? '' : valueText(value);
  useEffect(() => {
    // It works without TLS, too. What is marked in the page is copied instead.
    const copy = (event: ClipboardEvent) => {
      if (document.activeElement !== grid.current || !getSelection()?.isCollapsed) return;
      // The clipboard keeps what it has until there is something to copy.
      if (value === undefined) return;
      event.clipboardData?.setData('text/plain', text);
      event.preventDefault();
    };
    document.addEventListener('copy', copy);
    return () => document.removeEventListener('copy', copy);
  }, [grid, value, text]);
  return (
    <section class="cell-bar" aria-label="Chosen cell">
      <div class="row">
        <strong class="grow ellipsis">{`${column}, row ${formatCount(cell.row + 1)}`}</strong>
        <CopyText text={text} disabled={value === undefined} />
        <Button look="quiet" size="icon" aria-label="Close" onClick={onClose}>
          <CloseIcon />
        </Button>
      </div>
      <textarea
        class="input"
        aria-label="Value of the cell"
        readOnly
        rows={3}
        value={text}
        placeholder={value === undefined ? '…' : value === null ? 'missing' : undefined}
      />
    </section>
  );
}
