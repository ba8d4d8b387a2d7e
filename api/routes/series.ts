import { z } from 'zod';
import { queryInteger } from '../http/query-integer.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { operation } from '../openapi/operation.ts';
import { findRows, VIEW_ERRORS, viewAnswers } from '../tables/materialize-view.ts';
import { parseSeries } from '../tables/series-query.ts';
import { filterQuery, parseFilter } from '../tables/table-query.ts';
import {
  isUnchanged,
  makeCachedReader,
  openTable,
  sendParts,
  TABLE_PATH,
} from '../tables/table-requests.ts';

/** Bytes of cached answers. */
const CACHED_SERIES = 16 << 20;

const seriesQuery = z.strictObject({
  x: z.string().describe('A column of numbers or times.'),
  y: z.string().describe('Likewise.'),
  points: queryInteger({ min: 1, max: 10_000, default: 2_000 }),
  from: z.string().optional().describe('A value of x; the least one by default.'),
  to: z.string().optional().describe('A value of x; the one after the greatest by default.'),
  filter: filterQuery,
});
const edges = z.array(z.union([z.string(), z.number()]));
const values = z.array(z.union([z.string(), z.number(), z.null()]));
const seriesRecord = z
  .object({
    x: z.string(),
    y: z.string(),
    buckets: z
      .object({
        from: edges,
        to: edges,
        min: values,
        max: values,
        count: z.array(z.number().int()),
      })
      .meta({ id: 'SeriesBuckets' }),
  })
  .meta({ id: 'TableSeries' });

/** What a plot of a table needs at any zoom. */
export default routes('json-body', (router, api) => {
  const read = makeCachedReader(api, CACHED_SERIES);

  resource(router, `${TABLE_PATH}/series`, {
    get: operation({
      id: 'readSeries',
      topic: 'tables',
      summary: 'Read the least and greatest value of a column along another',
      details:
        'So that a plot of any number of rows is true at any zoom: `points` buckets of equal width of x, each with `from` and without `to`, and in each the least, the greatest and the number of the values of y; a bucket without any has count 0, and null. Rows where either is missing, NaN or infinite count nowhere. Edges between days or microseconds, or between integers that are texts, are rounded up to the next one, which changes no bucket. A column of one value has one bucket, and there is none where a column has no value. With `filter`, of the rows that pass all; the first request waits for the job that finds them, as one of rows does.',
      query: seriesQuery,
      headers: ['If-None-Match', 'Prefer'],
      answers: viewAnswers('The buckets, in columns side by side.', seriesRecord),
      errors: VIEW_ERRORS,
      handle: async ({ req, res, query }) => {
        const { table, columns: known } = await openTable(api, { req, res });
        const asked = query();
        const request = parseSeries(asked, known);
        const filter = parseFilter(asked.filter, known);
        if (isUnchanged({ req, res }, table)) return;
        const head = JSON.stringify({ x: asked.x, y: asked.y }).slice(0, -1);
        if (!request)
          return sendParts(res, [
            `${head},"buckets":{"from":[],"to":[],"min":[],"max":[],"count":[]}}`,
          ]);
        const { points, range, base } = request;
        const file = await findRows(api, { req, res, table, filter });
        if (!file) return;
        const task = { kind: 'series' as const, ...request };
        const buckets = await read(
          { req, res, table, file },
          task,
          asked.x,
          asked.y,
          points,
          range,
          base,
        );
        sendParts(res, [`${head},"buckets":`, buckets, '}']);
      },
    }),
  });
});
