import type { ComponentChildren } from 'preact';
import { TableBox } from './table-box.tsx';

export interface Column<Row> {
  name: string;
  /** Classes of its cells. */
  look?: string;
  /** All of it, where the cell cuts it off. */
  title?: (row: Row) => string;
  cell: (row: Row) => ComponentChildren;
}

interface TableProps<Row> {
  /** What its rows are. */
  label: string;
  rows: readonly Row[];
  keyOf: (row: Row) => string | number;
  /** The first one has what a row is called. */
  columns: readonly Column<Row>[];
  /** What can be done with a row. */
  actions?: (row: Row) => ComponentChildren;
  /** The row that is looked at. */
  isChosen?: (row: Row) => boolean;
  /** Classes of the table. */
  look?: string;
}

/** Rows of one kind, by columns. */
export function Table<Row>({
  label,
  rows,
  columns,
  actions,
  look = '',
  ...props
}: TableProps<Row>) {
  const { keyOf, isChosen } = props;
  return (
    <TableBox label={label}>
      <table class={`plain ${look}`} aria-label={label}>
        <thead>
          <tr>
            {columns.map(column => (
              <th
                key={column.name}
                scope="col"
                class={column.look === 'numbers' ? 'numbers' : undefined}
              >
                {column.name}
              </th>
            ))}
            {actions && (
              <th scope="col" class="actions">
                <span class="visually-hidden">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map(row => (
            <tr key={keyOf(row)} data-chosen={isChosen?.(row)}>
              {columns.map((column, n) => {
                const Cell = n === 0 ? 'th' : 'td';
                const scope = n === 0 ? 'row' : undefined;
                return (
                  <Cell
                    key={column.name}
                    scope={scope}
                    class={column.look}
                    title={column.title?.(row)}
                  >
                    {column.cell(row)}
                  </Cell>
                );
              })}
              {actions && <td class="actions">{actions(row)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </TableBox>
  );
}
