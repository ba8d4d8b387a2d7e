import type { TargetedSubmitEvent } from 'preact';
import { useState } from 'preact/hooks';
import { type Column, type TableKey, type Value, valueText } from '../service/tables.ts';
import { Button } from '../ui/button.tsx';
import { CloseIcon } from '../ui/icons.tsx';
import { formatCount } from '../ui/numbers.ts';
import { ColumnHistogram } from './histogram.tsx';
import { OPS, type Op } from './view-address.ts';

interface ColumnPanelProps {
  table: TableKey;
  column: Column;
  /** The number of all rows of the table. */
  rows: number;
  /** The filters that the counted rows pass. */
  filter: string[];
  onFilter: (filters: string[]) => void;
  onClose: () => void;
}

/** A column: what is in it, and a filter by it. */
export function ColumnPanel({ table, column, rows, filter, onFilter, onClose }: ColumnPanelProps) {
  const { name, type, unit, nearly, min, max, nulls } = column;
  return (
    <section class="card column-panel" aria-label={`About ${name}`}>
      <div class="card-head">
        <h2 class="ellipsis" title={name}>
          {name}
        </h2>
        <Button look="quiet" size="icon" aria-label="Close" onClick={onClose}>
          <CloseIcon />
        </Button>
      </div>
      <div class="card-body">
        <dl class="column-facts">
          <Fact name="Type">{type}</Fact>
          {unit && <Fact name="Unit">{unit}</Fact>}
          <Fact name="Least">{tell(min)}</Fact>
          <Fact name="Greatest">{tell(max)}</Fact>
          <Fact name="Missing">
            {nulls === 0 ? 'none' : `${formatCount(nulls)} of ${formatCount(rows)}`}
          </Fact>
        </dl>
        {nearly && <p>{tellOdd(nearly)}</p>}
        <ColumnHistogram table={table} column={column} filter={filter} onFilter={onFilter} />
        <FilterForm key={name} name={name} onFilter={onFilter} />
      </div>
    </section>
  );
}

/** Rows are counted from 1, as beside the table. */
const tellOdd = ({ type, others, first }: NonNullable<Column['nearly']>): string => {
  const what = `${type === 'integer' ? 'an' : 'a'} ${type}`;
  const more = others === 1 ? '' : `, and ${formatCount(others - 1)} more values are not either`;
  return `Sorted and compared as text: row ${formatCount(first.row + 1)} has "${first.value}", which is not ${what}${more}.`;
};

const tell = (value: Value) => (value === null ? 'none' : valueText(value));

const Fact = ({ name, children }: { name: string; children: string }) => (
  <div>
    <dt class="muted">{name}</dt>
    <dd>{children}</dd>
  </div>
);

function FilterForm({ name, onFilter }: { name: string; onFilter: (filters: string[]) => void }) {
  const [op, setOp] = useState<Op>('eq');
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const value = op === 'null' ? 'true' : String(new FormData(event.currentTarget).get('value'));
    onFilter([`${name}:${op}:${value}`]);
  };
  return (
    <form class="row" onSubmit={send} autocomplete="off" aria-label="Filter">
      <select
        class="input short"
        aria-label="Condition"
        value={op}
        onChange={event => setOp(event.currentTarget.value as Op)}
      >
        {Object.entries(OPS).map(([each, sign]) => (
          <option key={each} value={each}>
            {sign}
          </option>
        ))}
      </select>
      {op !== 'null' && <input class="input grow" name="value" aria-label="Value" />}
      <Button type="submit">Filter</Button>
    </form>
  );
}
