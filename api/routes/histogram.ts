import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { queryInteger } from '../http/query-integer.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { operation } from '../openapi/operation.ts';
import { findColumn } from '../tables/table-query.ts';
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
        'Bins of equal width between the least and the greatest value, for numbers and times; each value is counted in the bin that begins with or below it. For texts the 20 commonest values, cut at 200 characters.',
      query: histogramQuery,
      headers: ['If-None-Match'],
      answers: { 200: { means: 'The counts.', json: histogramRecord }, 304: 'Unchanged.' },
      errors: ['invalid_input', 'not_found', 'conflict'],
      handle: async ({ req, res, query }) => {
        const table = await findTable(api, req, res);
        const { column: name, bins } = query();
        const column = findColumn(
          'column',
          name,
          await api.tables.columns.find(api.database.db, table),
        );
        if (isUnchanged(req, res, table)) return;
        const { nulls, type, top = [] } = column;
        const head = JSON.stringify({ column: name, nulls }).slice(0, -1);
        if (type === 'text') return sendParts(res, [`${head},"values":`, JSON.stringify(top), '}']);
        const key = JSON.stringify([table.object, name, type === 'boolean' ? 0 : bins]);
        const file = { key: table.object, size: table.size };
        const counts =
          histograms.get(key) ??
          (
            await api.tables.reader.read(
              file,
              { kind: 'histogram', column, bins },
              readFor(api, res),
            )
          ).bytes;
        histograms.set(key, counts, { size: counts.length + key.length });
        sendParts(res, [`${head},"${type === 'boolean' ? 'values' : 'bins'}":`, counts, '}']);
      },
    }),
  });
});
