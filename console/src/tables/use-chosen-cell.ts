import type { TargetedKeyboardEvent } from 'preact';
import { useState } from 'preact/hooks';

/** A place among all rows and columns, from 0. */
export interface CellPlace {
  row: number;
  column: number;
}

interface Grid {
  rows: number;
  columns: number;
  /** Rows that are seen whole. */
  page: number;
  /** What the first key chooses. */
  first: CellPlace;
}

/** The cell that somebody has chosen, by a click or by the keys of other grids. */
export function useChosenCell({ rows, columns, page, first }: Grid) {
  const [cell, choose] = useState<CellPlace>();
  const steps: Record<string, [rows: number, columns: number]> = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
    PageUp: [-page, 0],
    PageDown: [page, 0],
    Home: [-rows, 0],
    End: [rows, 0],
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>) => {
    const { key, target, currentTarget, ctrlKey, metaKey, altKey } = event;
    if (target !== currentTarget || ctrlKey || metaKey || altKey || rows === 0) return;
    if (key === 'Escape') choose(undefined);
    const step = steps[key];
    // Without a cell the other keys scroll, as they do anywhere.
    if (!step || !(cell || key.startsWith('Arrow'))) return;
    event.preventDefault();
    choose(
      cell
        ? { row: within(cell.row + step[0], rows), column: within(cell.column + step[1], columns) }
        : first,
    );
  };
  return { cell, choose, onKeyDown };
}

const within = (n: number, count: number) => Math.max(0, Math.min(count - 1, n));
