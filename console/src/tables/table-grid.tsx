// biome-ignore-all lint/a11y/useSemanticElements: rows and cells stand where they are put, which those of a <table> do not.
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus, and names the cell that is chosen.
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';
import type { View } from '../service/table-view.ts';
import { type Column, lookAgain, readRowsOf, type TableKey } from '../service/tables.ts';
import { Button } from '../ui/button.tsx';
import { Empty } from '../ui/empty.tsx';
import { formatCount } from '../ui/numbers.ts';
import { Problem } from '../ui/problem.tsx';
import { Wait } from '../ui/wait.tsx';
import { CellBar } from './cell-bar.tsx';
import { layColumns, seenColumns } from './column-layout.ts';
import { Cell, cellId, Head } from './grid-cells.tsx';
import { TableRows } from './table-rows.ts';
import { type CellPlace, useChosenCell } from './use-chosen-cell.ts';
import { useScaledScroll } from './use-scaled-scroll.ts';

interface TableGridProps {
  table: TableKey;
  columns: Column[];
  /** Rows of the whole table. */
  rows: number;
  view: View;
  /** The row that the address names; it is looked at first, from 0. */
  row: number;
  onRow: (row: number) => void;
  onSort: (sort: string[]) => void;
  onColumn: (name: string) => void;
  onTotal: (total: number | undefined) => void;
}

const ROW = 30;
const HEAD = 38;
const NUMBERS = 96;
/** The address tells where somebody has stopped. */
const REST_MS = 400;

/** Rows of a table, however many: those that are seen. */
export function TableGrid(props: TableGridProps) {
  const { table, columns, rows, view, row, onRow, onSort, onColumn, onTotal } = props;
  const box = useRef<HTMLDivElement>(null);
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const starts = useMemo(() => layColumns(columns), [columns]);
  const names = useMemo(() => new Set(columns.map(({ name }) => name)), [columns]);
  const isPlain = view.sort.length === 0 && view.filter.length === 0;
  const viewKey = JSON.stringify([table, view]);
  const data = useMemo(
    () =>
      new TableRows(
        columns.map(({ name }) => name),
        (query, signal) => readRowsOf(table, view, query, signal),
        () => redraw(undefined),
      ),
    [viewKey, columns],
  );
  useEffect(() => () => data.destroy(), [data]);
  const isBroken = data.error !== undefined;
  useEffect(() => {
    if (isBroken) void lookAgain(table);
  }, [isBroken, table]);
  const total = data.total ?? (isPlain ? rows : 0);
  const scroll = useScaledScroll(box, { rows: total, rowHeight: ROW, head: HEAD });
  const known = data.total;
  useEffect(() => onTotal(isPlain ? rows : known), [known, isPlain, rows, onTotal]);
  // Scrolls to where the address says, once there are so many rows. Layout effects, this and the next one: on a busy
  // machine others come later, and a row that was left would be written into an address that has just got another one.
  const shown = useRef(-1);
  useLayoutEffect(() => {
    if (total === 0 || row === shown.current) return;
    shown.current = row;
    scroll.moveTo(row);
  });
  const { first, left, width } = scroll;
  useLayoutEffect(() => {
    if (first === shown.current || total === 0) return;
    const timer = setTimeout(() => {
      shown.current = first;
      onRow(first);
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [first, total, onRow]);
  const count = Math.max(0, Math.min(Math.ceil(scroll.view / ROW) + 1, total - first));
  const seen = seenColumns(starts, left, left + width - NUMBERS);
  useEffect(() => {
    data.want({
      firstRow: first,
      endRow: first + count,
      firstColumn: seen.first,
      endColumn: seen.end,
    });
  }, [data, data.error, first, count, seen.first, seen.end]);
  const whole = NUMBERS + (starts.at(-1) ?? 0);
  const shownColumns = columns.slice(seen.first, seen.end);
  const startOf = (n: number) => NUMBERS + (starts[seen.first + n] ?? 0);
  const widthOf = (n: number) => (starts[seen.first + n + 1] ?? 0) - (starts[seen.first + n] ?? 0);
  const page = Math.max(1, Math.floor(scroll.view / ROW));
  const { cell, choose, onKeyDown } = useChosenCell({
    rows: total,
    columns: columns.length,
    page,
    first: { row: Math.min(total - 1, first + (scroll.hidden > 0 ? 1 : 0)), column: seen.first },
  });
  const chosen = cell && columns[cell.column];
  // It is seen whole once it is chosen, above the bar too, which takes its height of the grid in the layout before.
  const [followed, follow] = useState<CellPlace>();
  useLayoutEffect(() => follow(cell), [cell]);
  useLayoutEffect(() => {
    if (!cell) return;
    const top = first + scroll.hidden / ROW;
    const high = scroll.view / ROW;
    if (cell.row < top || cell.row + 1 > top + high)
      scroll.moveTo(Math.min(cell.row, Math.max(top, cell.row + 1 - high)));
    const [start = 0, end = 0] = starts.slice(cell.column);
    box.current?.scrollTo({ left: Math.min(start, Math.max(left, end - width + NUMBERS)) });
  }, [followed]);
  const isDrawn =
    cell &&
    cell.row >= first &&
    cell.row < first + count &&
    cell.column >= seen.first &&
    cell.column < seen.end;
  const isWaiting = data.total === undefined && data.error === undefined;
  return (
    <div class="card grid-card">
      {data.error !== undefined && (
        <Problem error={data.error}>
          <p>
            <Button size="small" onClick={() => data.retry()}>
              Try again
            </Button>
          </p>
        </Problem>
      )}
      <div
        class="grid"
        ref={box}
        role="grid"
        aria-label="Rows"
        aria-rowcount={total + 1}
        aria-colcount={columns.length + 1}
        aria-readonly
        aria-activedescendant={isDrawn ? cellId(cell) : undefined}
        tabIndex={0}
        onKeyDown={onKeyDown}
      >
        <div class="grid-still" style={{ width: `${whole}px` }}>
          <div class="grid-head" role="row" aria-rowindex={1} style={{ height: `${HEAD}px` }}>
            <div class="grid-number" role="columnheader" aria-colindex={1}>
              Row
            </div>
            {shownColumns.map((column, n) => (
              <Head
                key={column.name}
                column={column}
                index={seen.first + n}
                bounds={{ left: `${startOf(n)}px`, width: `${widthOf(n)}px` }}
                view={view}
                names={names}
                onSort={onSort}
                onColumn={onColumn}
              />
            ))}
          </div>
          <div
            class="grid-rows"
            role="rowgroup"
            style={{ transform: `translateY(${-scroll.hidden}px)` }}
          >
            {Array.from({ length: count }, (_, at) => {
              const n = first + at;
              return (
                <div
                  key={at}
                  class="grid-row"
                  role="row"
                  aria-rowindex={n + 2}
                  style={{ height: `${ROW}px` }}
                >
                  <div class="grid-number" role="rowheader" aria-colindex={1}>
                    {formatCount(n + 1)}
                  </div>
                  {shownColumns.map(({ name, type }, m) => (
                    <Cell
                      key={name}
                      type={type}
                      cell={{ row: n, column: seen.first + m }}
                      chosen={cell}
                      onChoose={choose}
                      value={data.value(n, seen.first + m)}
                      bounds={{ left: `${startOf(m)}px`, width: `${widthOf(m)}px` }}
                    />
                  ))}
                </div>
              );
            })}
          </div>
        </div>
        <div style={{ height: `${scroll.rest}px` }} />
      </div>
      {cell && chosen && (
        <CellBar
          cell={cell}
          column={chosen.name}
          value={data.value(cell.row, cell.column)}
          grid={box}
          onClose={() => {
            choose(undefined);
            box.current?.focus();
          }}
        />
      )}
      {data.total === 0 && (
        <div class="grid-wait">
          <Empty title={isPlain ? 'It has no rows' : 'No row passes the filters'}>
            <p>{isPlain ? 'Its file names columns alone.' : 'Leave out one of them, above.'}</p>
          </Empty>
        </div>
      )}
      {isWaiting && (
        <div class="grid-wait">
          <Wait>
            {isPlain
              ? 'Reading rows …'
              : `${view.sort.length > 0 ? 'Sorting' : 'Filtering'} ${formatCount(rows)} rows …`}
          </Wait>
        </div>
      )}
    </div>
  );
}
