import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { queryInteger } from '../http/query-integer.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { operation } from '../openapi/operation.ts';
import { findRows, VIEW_ERRORS, viewPending } from '../tables/materialize-view.ts';
import { filterQuery, findColumn, parseFilter } from '../tables/table-query.ts';
import {
  cellValue,
  findTable,
  isUnchanged,
  readFor,
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
    bins: z.array(bin).optional(),
    values: z
      .array(z.object({ value: cellValue, count: z.number().int() }).meta({ id: 'ValueCount' }))
      .optional(),
  })
  .meta({ id: 'Histogram' });

/** How often a column of a table has which values. */
export default routes('json-body', (router, api) => {
  const histograms = new LRUCache<string, Buffer>({ maxSize: CACHED_HISTOGRAMS });

  resource(router, `${TABLE_PATH}/histogram`, {
    get: operation({
      id: 'countValues',
      topic: 'tables',
      summary: 'Count the values of a column',
      details:
        'Bins of equal width between the least and the greatest value, for numbers and times; each value is counted in the bin that begins with or below it. For texts the 20 commonest values, cut at 200 characters. With `filter`, of the rows that pass all, in the bins of the whole table; the first request waits for the job that finds them, as one of rows does.',
      query: histogramQuery,
      headers: ['If-None-Match', 'Prefer'],
      answers: {
        200: { means: 'The counts.', json: histogramRecord },
        202: viewPending,
        304: 'Unchanged.',
      },
      errors: VIEW_ERRORS,
      handle: async ({ req, res, query }) => {
        const table = await findTable(api, req, res);
        const { column: name, bins, filter: given } = query();
        const known = await api.tables.columns.find(api.database.db, table);
        const column = findColumn('column', name, known);
        const filter = parseFilter(given, known);
        if (isUnchanged(req, res, table)) return;
        const { nulls, type, top = [] } = column;
        const head = `{"column":${JSON.stringify(name)},`;
        // Counted when the table was made.
        if (type === 'text' && filter.length === 0)
          return sendParts(res, [head, JSON.stringify({ nulls, values: top }).slice(1)]);
        const rows = await findRows(api, { req, res, table, filter });
        if (!rows) return;
        const key = JSON.stringify([rows.key, name, type === 'boolean' ? 0 : bins]);
        const task = { kind: 'histogram' as const, column, bins };
        const counts =
          histograms.get(key) ??
          (await api.tables.reader.read(rows, task, readFor(api, res))).bytes.subarray(1);
        histograms.set(key, counts, { size: counts.length + key.length });
        sendParts(res, [head, counts]);
      },
    }),
  });
});
