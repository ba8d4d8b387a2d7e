import type { Request, Response } from 'express';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { ColumnStatistics } from '../../shared/database/schema.ts';
import { matchesEntityTag } from '../http/conditional-requests.ts';
import { queryInteger } from '../http/query-integer.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { sendObject } from '../http/send-object.ts';
import { currentUser } from '../identity/current-user.ts';
import { jobRecord } from '../jobs/views/job-view.ts';
import { answerWithLocation, operation, rangeAnswers } from '../openapi/operation.ts';
import { setAttachment } from '../tables/attachment.ts';
import { ColumnCache } from '../tables/column-cache.ts';
import { isExact } from '../tables/encode-value.ts';
import { findStoredArtifact, type StoredArtifact } from '../tables/find-artifact.ts';
import { materializeView } from '../tables/materialize-view.ts';
import { removeArtifact } from '../tables/remove-artifact.ts';
import { invalidQuery, parseColumns, parseFilter, parseSort } from '../tables/table-query.ts';
import { type ReadRequest, TableReader } from '../tables/table-reader.ts';

/** The most values of one page. */
const MAX_CELLS = 1_000_000;
/** Bytes of cached histograms. */
const CACHED_HISTOGRAMS = 8 << 20;

const texts = z.union([z.string(), z.array(z.string()).max(5_000)]).optional();
const rowsQuery = z.strictObject({
  offset: queryInteger({ min: 0, max: Number.MAX_SAFE_INTEGER, default: 0 }),
  limit: queryInteger({ min: 1, max: 10_000, default: 100 }),
  columns: texts.describe('Names, separated by commas; repeatable, for names that hold a comma.'),
  sort: texts.describe('Names, separated by commas, `-` before one for descending; repeatable.'),
  filter: texts.describe('column:op:value; repeatable: rows pass all. op: eq ne lt le gt ge null.'),
});
const histogramQuery = z.strictObject({
  column: z.string(),
  bins: queryInteger({ min: 1, max: 1_000, default: 20 }),
});
const value = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const columnItem = z.object({
  name: z.string(),
  type: z.enum(['boolean', 'integer', 'number', 'date', 'time', 'timestamp', 'text']),
  min: value,
  max: value,
  nulls: z.number().int(),
  exact: z
    .literal(true)
    .optional()
    .describe('Integers pass 2^53: values, `min`, `max` and bins are texts.'),
});
const rowsPage = z.object({
  offset: z.number().int(),
  total: z.number().int().describe('Rows of the whole table or view.'),
  columns: z.array(z.string()),
  rows: z.array(z.array(value)),
});
const bin = z.object({ from: value, to: value, count: z.number().int() });
const histogramRecord = z.object({
  column: z.string(),
  nulls: z.number().int(),
  bins: z.array(bin).optional(),
  values: z.array(z.object({ value, count: z.number().int() })).optional(),
});

/** Table artifacts: metadata, rows, histograms, and the Parquet file. */
export default routes('json-body', (router, api) => {
  const columnsOf = new ColumnCache();
  const reader = new TableReader(api.objects);
  const histograms = new LRUCache<string, Buffer>({ maxSize: CACHED_HISTOGRAMS });
  const find = (req: Request, res: Response) =>
    findStoredArtifact(api, { req, res, kind: 'table' });
  const reading = (res: Response): ReadRequest => ({
    user: currentUser(res).username,
    hasLeft: () => res.closed || res.destroyed,
    reserveMemory: bytes => api.memory.reserve(res, bytes),
  });
  const path = '/models/:mid/tables/:aid';

  resource(router, path, {
    delete: operation({
      summary: 'Remove a table artifact',
      details: 'With the sorted and filtered views of it.',
      headers: ['If-Match'],
      answers: { 204: 'Removed.' },
      errors: ['not_found', 'forbidden', 'precondition_failed'],
      handle: ({ req, res }) => removeArtifact(api, { req, res, kind: 'table' }),
    }),
  });

  resource(router, `${path}/metadata`, {
    get: operation({
      summary: "Look at a table's columns",
      headers: ['If-None-Match'],
      answers: {
        200: {
          means: 'The columns, each with its type, least and greatest value and missing values.',
          json: z.object({ rows: z.number().int(), columns: z.array(columnItem) }),
        },
        304: 'Unchanged.',
      },
      errors: ['not_found', 'conflict'],
      handle: async ({ req, res }) => {
        const table = await find(req, res);
        if (isUnchanged(req, res, table)) return;
        const columns = await columnsOf.find(api, table);
        const bytes = Buffer.from(metadataText(table.rows, columns));
        await api.memory.reserve(res, bytes.length);
        res.type('application/json').send(bytes);
      },
    }),
  });

  resource(router, `${path}/rows`, {
    get: operation({
      summary: 'Read rows of a table',
      details:
        'In the order of the file, or of `sort`, where equal rows keep that of the file and missing values come last. Integers are exact; in a column that is `exact` they are texts, since JSON numbers beyond 2^53 are rounded by most clients; dates and times are ISO 8601; NaN and the infinities are texts. The first request of a sorted or filtered view waits for the job that makes it, as a launch does; a missing value passes no filter but `null`.',
      query: rowsQuery,
      headers: ['If-None-Match', 'Prefer'],
      answers: {
        200: { means: 'The rows.', json: rowsPage },
        202: answerWithLocation(
          'The view is still being made; ask again.',
          'The job, where it is yours.',
          z.union([jobRecord, jobRecord.pick({ state: true, progress: true })]),
        ),
        304: 'Unchanged.',
      },
      errors: ['invalid_input', 'not_found', 'payload_too_large', 'too_many_requests', 'conflict'],
      handle: async ({ req, res, query }) => {
        const table = await find(req, res);
        const { offset, limit, ...given } = query();
        const known = await columnsOf.find(api, table);
        const columns = parseColumns(given.columns, known);
        const exact = known.filter(isExact).map(column => column.name);
        const sort = parseSort(given.sort, known);
        const filter = parseFilter(given.filter, known);
        if (columns.length * limit > MAX_CELLS)
          throw invalidQuery(
            'limit',
            `${limit} rows of ${columns.length} columns are more than ${MAX_CELLS} values: ask for fewer of either`,
          );
        if (isUnchanged(req, res, table)) return;
        const isPlain = sort.length === 0 && filter.length === 0;
        const view = isPlain
          ? { key: table.object, size: table.size, rows: table.rows }
          : await materializeView(api, { req, res, table, view: { sort, filter } });
        if (!view) return;
        const end = Math.min(view.rows, offset + limit);
        const rows =
          offset >= end
            ? Buffer.from('[]')
            : await reader.read(
                view,
                { kind: 'rows', columns, exact, start: offset, end },
                reading(res),
              );
        const head = JSON.stringify({ offset, total: view.rows, columns }).slice(0, -1);
        sendParts(res, [`${head},"rows":`, rows, '}']);
      },
    }),
  });

  resource(router, `${path}/histogram`, {
    get: operation({
      summary: 'Count the values of a column',
      details:
        'Bins of equal width between the least and the greatest value, for numbers and times; each value is counted in the bin that begins with or below it. For texts the 20 commonest values, cut at 200 characters.',
      query: histogramQuery,
      headers: ['If-None-Match'],
      answers: { 200: { means: 'The counts.', json: histogramRecord }, 304: 'Unchanged.' },
      errors: ['invalid_input', 'not_found', 'conflict'],
      handle: async ({ req, res, query }) => {
        const table = await find(req, res);
        const { column: name, bins } = query();
        const column = (await columnsOf.find(api, table)).find(one => one.name === name);
        if (!column)
          throw invalidQuery('column', `there is no column ${JSON.stringify(name.slice(0, 100))}`);
        if (isUnchanged(req, res, table)) return;
        const { nulls, type, top = [] } = column;
        const head = JSON.stringify({ column: name, nulls }).slice(0, -1);
        if (type === 'text') return sendParts(res, [`${head},"values":`, JSON.stringify(top), '}']);
        const key = JSON.stringify([table.object, name, type === 'boolean' ? 0 : bins]);
        const counts =
          histograms.get(key) ??
          (await reader.read(
            { key: table.object, size: table.size },
            { kind: 'histogram', column, bins },
            reading(res),
          ));
        histograms.set(key, counts, { size: counts.length + key.length });
        sendParts(res, [`${head},"${type === 'boolean' ? 'values' : 'bins'}":`, counts, '}']);
      },
    }),
  });

  resource(router, `${path}/data`, {
    get: operation({
      summary: 'Retrieve a table as Parquet',
      headers: ['Range', 'If-Range', 'If-None-Match', 'If-Match'],
      answers: rangeAnswers(['application/vnd.apache.parquet'], 'The whole file.'),
      errors: ['not_found', 'range_not_satisfiable', 'precondition_failed'],
      handle: async ({ req, res }) => {
        const { aid, object } = await find(req, res);
        setAttachment(res, `${aid}.parquet`);
        await sendObject(api, req, res, { key: object, type: 'application/vnd.apache.parquet' });
      },
    }),
  });
});

/** All responses about a table depend on its bytes alone: 304 is answered before any are read. */
function isUnchanged(req: Request, res: Response, { tag }: StoredArtifact): boolean {
  res.set('ETag', tag).set('Cache-Control', 'private, no-cache');
  if (!matchesEntityTag(req.get('If-None-Match'), tag)) return false;
  res.status(304).end();
  return true;
}

function sendParts(res: Response, parts: (string | Buffer)[]): void {
  const bytes = Buffer.concat(
    parts.map(part => (typeof part === 'string' ? Buffer.from(part) : part)),
  );
  res.type('application/json').send(bytes);
}

/** Integers are stored as text. */
function metadataText(rows: number, columns: ColumnStatistics[]): string {
  const items = columns.map(column => {
    const { name, type, min, max, nulls } = column;
    const exact = isExact(column);
    const write = (value: unknown) =>
      type === 'integer' && value !== null && !exact ? String(value) : JSON.stringify(value);
    return `{"name":${JSON.stringify(name)},"type":"${type}","min":${write(min)},"max":${write(max)},"nulls":${nulls}${exact ? ',"exact":true' : ''}}`;
  });
  return `{"rows":${rows},"columns":[${items.join(',')}]}`;
}
