import { z } from 'zod';
import { checkIfMatch } from '../http/conditional-requests.ts';
import { queryInteger } from '../http/query-integer.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { operation } from '../openapi/operation.ts';
import { isExact } from '../tables/encode-value.ts';
import { findRows, VIEW_ERRORS, viewPending } from '../tables/materialize-view.ts';
import {
  MAX_EXPORTED_ROWS,
  negotiateFormat,
  ROW_TYPES,
  sendExport,
} from '../tables/send-export.ts';
import {
  columnNames,
  filterQuery,
  invalidQuery,
  parseColumns,
  parseFilter,
  parseSort,
  sortQuery,
} from '../tables/table-query.ts';
import {
  cellValue,
  isUnchanged,
  openTable,
  readFor,
  sendParts,
  TABLE_PATH,
  tagOf,
} from '../tables/table-requests.ts';

/** The most rows, and values, of one page of JSON. */
const MAX_PAGE_ROWS = 10_000;
const MAX_CELLS = 1_000_000;

const rowsQuery = z.strictObject({
  offset: queryInteger({ min: 0, max: Number.MAX_SAFE_INTEGER, default: 0 }),
  limit: queryInteger({ min: 1, max: MAX_EXPORTED_ROWS, default: 100 }).describe(
    `At most ${MAX_PAGE_ROWS} as JSON.`,
  ),
  columns: columnNames.describe(
    'Names, separated by commas; repeatable, for names that hold a comma.',
  ),
  sort: sortQuery,
  filter: filterQuery,
});
const rowsPage = z
  .object({
    offset: z.number().int(),
    total: z.number().int().describe('Rows of the whole table or view.'),
    columns: z.array(z.string()),
    rows: z.array(z.array(cellValue)),
  })
  .meta({ id: 'TableRows' });

/** Rows of tables: sorted, filtered, page by page or exported. */
export default routes('json-body', (router, api) => {
  resource(router, `${TABLE_PATH}/rows`, {
    get: operation({
      id: 'readRows',
      topic: 'tables',
      summary: 'Read rows of a table',
      details:
        'By `Accept` as JSON (at most 10,000 rows), as CSV (RFC 4180) or as a stream of Apache Arrow (at most 1,000,000 rows); an answer of these that ends early is cut, so check that it is whole. In the order of the file, or of `sort`, where equal rows keep that of the file and missing values come last. Who reads page after page sends the ETag of the first one as `If-Match`: 412 once another table has taken its place. Integers are exact; in a column that is `exact` they are texts, since JSON numbers beyond 2^53 are rounded by most clients; dates and times are ISO 8601; NaN and the infinities are texts. The first request of a sorted or filtered view waits for the job that makes it, as a launch does; a missing value passes no filter but `null`.',
      query: rowsQuery,
      headers: ['If-None-Match', 'If-Match', 'Prefer'],
      answers: {
        200: {
          means: 'The rows; as CSV with a line of names, a missing value as nothing at all.',
          json: rowsPage,
          types: Object.keys(ROW_TYPES).filter(type => type !== 'application/json'),
        },
        202: viewPending,
        304: 'Unchanged.',
      },
      errors: [...VIEW_ERRORS, 'precondition_failed'],
      handle: async ({ req, res, query }) => {
        const { table, columns: known } = await openTable(api, { req, res });
        const { offset, limit, ...given } = query();
        const columns = parseColumns(given.columns, known);
        const sort = parseSort(given.sort, known);
        const filter = parseFilter(given.filter, known);
        const format = negotiateFormat({ req, res });
        if (format === 'json') checkPageSize(limit, columns);
        checkIfMatch(req, tagOf(table, format));
        if (isUnchanged({ req, res }, table, format)) return;
        const view = await findRows(api, { req, res, table, sort, filter });
        if (!view) return;
        const end = Math.min(view.rows, offset + limit);
        if (format !== 'json') {
          const rows = { columns, start: Math.min(offset, end), end };
          const given = {
            reader: api.tableReader,
            file: view,
            format,
            rows,
            reading: readFor(api, { req, res }, table),
            name: table.aid,
          };
          return sendExport({ req, res }, given);
        }
        const exact = known.filter(isExact).map(column => column.name);
        const task = { kind: 'rows' as const, columns, exact, start: offset, end };
        const rows =
          offset >= end
            ? '[]'
            : (await api.tableReader.read(view, task, readFor(api, { req, res }, table))).bytes;
        const head = JSON.stringify({ offset, total: view.rows, columns }).slice(0, -1);
        sendParts(res, [`${head},"rows":`, rows, '}']);
      },
    }),
  });
});

function checkPageSize(limit: number, columns: string[]): void {
  if (limit > MAX_PAGE_ROWS)
    throw invalidQuery(
      'limit',
      `must be at most ${MAX_PAGE_ROWS} as JSON; as CSV or Arrow, by \`Accept\`, up to ${MAX_EXPORTED_ROWS}`,
    );
  if (columns.length * limit > MAX_CELLS)
    throw invalidQuery(
      'limit',
      `${limit} rows of ${columns.length} columns are more than ${MAX_CELLS} values: ask for fewer of either`,
    );
}
