/** More columns are not looked at, and make the page slow. */
export const COLUMNS = 100;
export const ROWS = 50;

/** The first rows of a table. */
export const RowsTable = ({ head, rows }: { head: string[]; rows: string[][] }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by keys, too.
  <section class="table-box preview-rows" aria-label="First rows" tabIndex={0}>
    <table aria-label="First rows">
      <thead>
        <tr>
          {head.slice(0, COLUMNS).map((name, n) => (
            <th key={n} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, n) => (
          <tr key={n}>
            {row.slice(0, COLUMNS).map((value, column) => (
              <td key={column} class="mono">
                {value}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </section>
);
