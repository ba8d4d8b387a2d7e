import { useCallback, useMemo, useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import type { ModelPartProps } from '../projects/model-part.ts';
import { type Column, type Table, type TableKey, useTable } from '../service/tables.ts';
import { Button } from '../ui/button.tsx';
import { CloseIcon, PlotIcon } from '../ui/icons.tsx';
import { Problem } from '../ui/problem.tsx';
import { useAddress } from '../ui/use-address.ts';
import { Wait } from '../ui/wait.tsx';
import { ColumnPanel } from './column-panel.tsx';
import { Downloads } from './downloads.tsx';
import { isPlottable } from './plot-scale.ts';
import { SeriesPlot, type Zoom } from './series-plot.tsx';
import { TableGrid } from './table-grid.tsx';
import { describeFilter, readView } from './view-address.ts';
import '../styles/table.css';
import { formatCount } from '../ui/numbers.ts';

/** A table of a model: its rows, its columns, and one column along another. */
export function TablePart({ project, model, name = '' }: ModelPartProps) {
  const { data, error } = useTable({ mid: model.id, aid: name });
  const tag = data?.tag ?? '';
  const table = useMemo(() => ({ mid: model.id, aid: name, tag }), [model.id, name, tag]);
  return (
    <>
      <h1 class="ellipsis" title={name}>
        {name}
      </h1>
      {error && (
        <Problem error={error}>
          <Link href={`/projects/${project.id}/models/${model.id}/content`}>
            All content of the model
          </Link>
        </Problem>
      )}
      {!data && !error && <Wait>Asking for the table …</Wait>}
      {data && <ShownTable key={`${name} ${tag}`} table={table} data={data.record} />}
    </>
  );
}

function ShownTable({ table, data }: { table: TableKey; data: Table }) {
  const [search, change] = useAddress();
  const [total, setTotal] = useState<number | undefined>(data.rows);
  const { columns, rows } = data;
  const view = readView(search);
  const viewKey = JSON.stringify(view);
  const about = columns.find(({ name }) => name === search.get('column'));
  const byName = (which: string) => columns.find(({ name }) => name === search.get(which));
  const [x, y] = [byName('x'), byName('y')];
  const row = Math.max(0, (Number(search.get('row')) || 1) - 1);
  // Another view is shown from its beginning.
  const filter = (filters: string[]) => change({ filter: filters, row: undefined });
  const onRow = useCallback(
    (first: number) => change({ row: first > 0 ? String(first + 1) : undefined }),
    [change],
  );
  return (
    <>
      <div class="row table-bar">
        <span class="grow muted" role="status">
          {total === undefined
            ? `Of ${formatCount(rows)} rows …`
            : total === rows
              ? `${countOf(rows, 'row')}, ${countOf(columns.length, 'column').toLowerCase()}`
              : `${formatCount(total)} of ${formatCount(rows)} rows`}
        </span>
        <GoToRow
          most={total ?? rows}
          onGo={to => change({ row: to > 1 ? String(to) : undefined })}
        />
        {x === undefined && <PlotButton columns={columns} onPlot={change} />}
        <Downloads table={table} view={view} total={total} />
      </div>
      {view.filter.length > 0 && (
        <ul class="row" aria-label="Filters">
          {view.filter.map(one => {
            const words = describeFilter(
              one,
              columns.map(column => column.name),
            );
            return (
              <li key={one}>
                <Button
                  size="small"
                  repeats
                  aria-label={`Leave out the filter ${words}`}
                  onClick={() => filter(view.filter.filter(each => each !== one))}
                >
                  {words}
                  <CloseIcon />
                </Button>
              </li>
            );
          })}
        </ul>
      )}
      {x && (
        <Plot
          table={table}
          filter={view.filter}
          columns={columns}
          x={x}
          y={y ?? x}
          search={search}
          onChange={change}
        />
      )}
      <div class="table-view" data-two={about !== undefined}>
        {about && (
          <ColumnPanel
            table={table}
            column={about}
            rows={rows}
            filter={view.filter}
            onFilter={added => filter([...new Set([...view.filter, ...added])])}
            onClose={() => change({ column: undefined })}
          />
        )}
        <TableGrid
          key={viewKey}
          table={table}
          columns={columns}
          rows={rows}
          view={view}
          row={row}
          onRow={onRow}
          onSort={sort => change({ sort, row: undefined })}
          onColumn={name => change({ column: name === about?.name ? undefined : name })}
          onTotal={setTotal}
        />
      </div>
    </>
  );
}

const countOf = (count: number, what: string) =>
  count === 1 ? `One ${what}` : `${formatCount(count)} ${what}s`;

type Change = ReturnType<typeof useAddress>[1];

function PlotButton({ columns, onPlot }: { columns: Column[]; onPlot: Change }) {
  const [first, second] = columns.filter(isPlottable);
  if (!first) return null;
  return (
    <Button onClick={() => onPlot({ x: first.name, y: (second ?? first).name })}>
      <PlotIcon />
      Plot
    </Button>
  );
}

interface PlotProps {
  table: TableKey;
  /** The filters that the plotted rows pass. */
  filter: string[];
  columns: Column[];
  x: Column;
  y: Column;
  search: URLSearchParams;
  onChange: Change;
}

function Plot({ table, filter, columns, x, y, search, onChange }: PlotProps) {
  const tos = search.getAll('to');
  const zoom: Zoom = search
    .getAll('from')
    .flatMap((from, n) => (tos[n] === undefined ? [] : [{ from, to: tos[n] }]));
  const choose = (axis: 'x' | 'y', name: string) =>
    // The zoom is into the other column's values.
    onChange({ [axis]: name, ...(axis === 'x' && { from: undefined, to: undefined }) });
  const select = (axis: 'x' | 'y', chosen: Column) => (
    <label class="row">
      <span>{axis === 'x' ? 'Along' : 'Plot'}</span>
      <select
        class="input short"
        value={chosen.name}
        onChange={event => choose(axis, event.currentTarget.value)}
      >
        {columns.filter(isPlottable).map(({ name }) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
  return (
    <>
      <div class="row">
        {select('y', y)}
        {select('x', x)}
        <Button
          onClick={() => onChange({ x: undefined, y: undefined, from: undefined, to: undefined })}
        >
          No plot
        </Button>
      </div>
      <SeriesPlot
        table={table}
        filter={filter}
        x={x}
        y={y}
        zoom={zoom}
        onZoom={next =>
          onChange({ from: next.map(({ from }) => from), to: next.map(({ to }) => to) })
        }
      />
    </>
  );
}

function GoToRow({ most, onGo }: { most: number; onGo: (row: number) => void }) {
  return (
    <form
      class="row"
      onSubmit={event => {
        event.preventDefault();
        const row = Number(new FormData(event.currentTarget).get('row'));
        if (row >= 1) onGo(row);
      }}
    >
      <label class="row">
        <span>Row</span>
        <input class="input go-to-row" name="row" type="number" min={1} max={Math.max(1, most)} />
      </label>
      <Button type="submit">Go</Button>
    </form>
  );
}
