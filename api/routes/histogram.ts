import { z } from 'zod';
import { queryInteger } from '../http/query-integer.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { operation } from '../openapi/operation.ts';
import { findRows, VIEW_ERRORS, viewAnswers } from '../tables/materialize-view.ts';
import { filterQuery, findColumn, parseFilter } from '../tables/table-query.ts';
import {
  cellValue,
  isUnchanged,
  makeCachedReader,
  openTable,
  sendParts,
  TABLE_PATH,
} from '../tables/table-requests.ts';

/** Bytes of cached histograms. */
const CACHED_HISTOGRAMS = 8 << 20;

const histogramQuery = z.strictObject({
  column: z.string(),
  bins: queryInteger({ min: 1, max: 1_000, default: 20 }),
  filter: filterQuery,
});
const bin = z
  .object({ from: cellValue, to: cellValue, count: z.number().int() })
  .meta({ id: 'HistogramBin' });
const histogramRecord = z
  .object({
    column: z.string(),
    nulls: z.number().int(),
    others: z
      .number()
      .int()
      .optional()
      .describe('Beside `bins`: NaN and the infinities, which are in none of them.'),
    bins: z.array(bin).optional(),
    values: z
      .array(
        z
          .object({
            value: cellValue,
            count: z.number().int(),
            cut: z.literal(true).optional().describe('The value is longer than is shown.'),
          })
          .meta({ id: 'ValueCount' }),
      )
      .optional(),
  })
  .meta({ id: 'Histogram' });

/** How often a column of a table has which values. */
export default routes('json-body', (router, api) => {
  const read = makeCachedReader(api, CACHED_HISTOGRAMS);

  resource(router, `${TABLE_PATH}/histogram`, {
    get: operation({
      id: 'countValues',
      topic: 'tables',
      summary: 'Count the values of a column',
      details:
        'Bins of equal width between the least and the greatest value, for numbers and times; each finite value is counted in the bin that begins with or below it, and `others` counts NaN and the infinities. For texts the 20 commonest values, cut at 200 characters, or without a filter at fewer where the table has more than 1,000 columns; `cut` marks those. With `filter`, of the rows that pass all, in the bins of the whole table; the first request waits for the job that finds them, as one of rows does.',
      query: histogramQuery,
      headers: ['If-None-Match', 'Prefer'],
      answers: viewAnswers('The counts.', histogramRecord),
      errors: VIEW_ERRORS,
      handle: async ({ req, res, query }) => {
        const { table, columns: known } = await openTable(api, { req, res });
        const { column: name, bins, filter: given } = query();
        const column = findColumn('column', name, known);
        const filter = parseFilter(given, known);
        if (isUnchanged({ req, res }, table)) return;
        const { nulls, type } = column;
        const head = `{"column":${JSON.stringify(name)},`;
        if (type === 'text' && filter.length === 0) {
          // Counted when the table was made, unless it is too wide.
          const top = await api.columnCache.findTop(api.database.db, table, name);
          if (top) return sendParts(res, [head, JSON.stringify({ nulls, values: top }).slice(1)]);
        }
        const rows = await findRows(api, { req, res, table, filter });
        if (!rows) return;
        const task = { kind: 'histogram' as const, column, bins };
        const counts = await read(
          { req, res, table, file: rows },
          task,
          name,
          type === 'boolean' ? 0 : bins,
        );
        sendParts(res, [head, counts.subarray(1)]);
      },
    }),
  });
});
