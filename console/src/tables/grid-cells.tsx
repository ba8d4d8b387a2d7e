// biome-ignore-all lint/a11y/useSemanticElements: cells stand where they are put, which those of a <table> do not.
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus, and names the cell that is chosen.
// biome-ignore-all lint/a11y/useKeyWithClickEvents: the grid takes the keys of all its cells.
import type { View } from '../service/table-view.ts';
import { type Column, type Value, valueText } from '../service/tables.ts';
import { DownIcon, HistogramIcon, UpIcon } from '../ui/icons.tsx';
import type { CellPlace } from './use-chosen-cell.ts';
import { directionOf, turnSort } from './view-address.ts';

/** Where a column is drawn. */
type ColumnBounds = { left: string; width: string };

interface HeadProps {
  column: Column;
  index: number;
  bounds: ColumnBounds;
  view: View;
  /** Of all columns. */
  names: ReadonlySet<string>;
  onSort: (sort: string[]) => void;
  onColumn: (name: string) => void;
}

export function Head({ column, index, bounds, view, names, onSort, onColumn }: HeadProps) {
  const { name, unit } = column;
  const direction = directionOf(view, { name, names });
  return (
    <div
      class="grid-cell"
      role="columnheader"
      aria-colindex={index + 2}
      aria-sort={direction ?? 'none'}
      style={bounds}
    >
      <button
        type="button"
        class="grid-sort ellipsis"
        title={`Sort by ${name}; with Shift beside what it is sorted by`}
        onClick={event => onSort(turnSort(view, { name, names }, event.shiftKey))}
      >
        {name}
        {unit && <span class="muted"> {unit}</span>}
        {direction === 'ascending' && <UpIcon />}
        {direction === 'descending' && <DownIcon />}
      </button>
      <button
        type="button"
        class="grid-about"
        aria-label={`About ${name}`}
        title="Its values, and a filter by them"
        onClick={() => onColumn(name)}
      >
        <HistogramIcon />
      </button>
    </div>
  );
}

interface CellProps {
  type: Column['type'];
  cell: CellPlace;
  chosen: CellPlace | undefined;
  onChoose: (cell: CellPlace) => void;
  value: Value | undefined;
  bounds: ColumnBounds;
}

/** The id of a cell's element, by which the grid names the chosen cell. */
export const cellId = ({ row, column }: CellPlace): string => `cell-${row}-${column}`;

export function Cell({ type, cell, chosen, onChoose, value, bounds }: CellProps) {
  const { row, column } = cell;
  const isMissing = value === null;
  const text = value === undefined ? '…' : isMissing ? 'missing' : valueText(value);
  return (
    <div
      class="grid-cell ellipsis"
      role="gridcell"
      id={cellId(cell)}
      aria-colindex={column + 2}
      aria-selected={row === chosen?.row && column === chosen.column}
      onClick={() => onChoose(cell)}
      data-type={type}
      data-missing={isMissing || value === undefined}
      title={text.length > 12 ? text : undefined}
      style={bounds}
    >
      {text}
    </div>
  );
}
