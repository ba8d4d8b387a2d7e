import type { ColumnStatistics } from '../../shared/database/schema.ts';
import type { TableGroups } from '../../shared/jobs/payloads/table-query.ts';
import { isExact } from './encode-value.ts';

/** The columns of a view of groups, which are named by their position, and how their values are written. */
export function groupColumns(
  { by, aggregates }: TableGroups,
  known: ColumnStatistics[],
): { names: string[]; columns: string[]; exact: string[]; sums: string[] } {
  const sources = new Map(known.map(column => [column.name, column]));
  const made = [
    ...by.map(column => ({ name: column, op: 'value' as const, column })),
    ...aggregates.map(({ op, column }) => ({
      name: column === undefined ? op : `${op}:${column}`,
      op,
      column,
    })),
  ].map(({ name, op, column = '' }, i) => ({
    name,
    op,
    position: String(i),
    source: sources.get(column),
  }));
  const positions = (those: typeof made) => those.map(({ position }) => position);
  return {
    names: made.map(({ name }) => name),
    columns: positions(made),
    exact: positions(
      made.filter(
        ({ op, source }) => ['value', 'min', 'max'].includes(op) && source && isExact(source),
      ),
    ),
    sums: positions(made.filter(({ op, source }) => op === 'sum' && source?.type === 'integer')),
  };
}
