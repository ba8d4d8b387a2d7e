import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { ColumnStatistics, CsvDialect } from '../../shared/database/schema.ts';
import { ENCODINGS } from '../../shared/parsers.ts';
import { queryInteger } from '../http/query-integer.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { sendObject } from '../http/send-object.ts';
import { answerWithLocation, operation, rangeAnswers } from '../openapi/operation.ts';
import { setAttachment } from '../tables/attachment.ts';
import { isExact } from '../tables/encode-value.ts';
import { materializeView, viewJob } from '../tables/materialize-view.ts';
import { removeArtifact } from '../tables/remove-artifact.ts';
import {
  MAX_EXPORTED_ROWS,
  negotiateFormat,
  ROW_TYPES,
  sendExport,
} from '../tables/send-export.ts';
import {
  findColumn,
  invalidQuery,
  parseColumns,
  parseFilter,
  parseSort,
} from '../tables/table-query.ts';
import {
  findTable,
  isUnchanged,
  readFor,
  sendParts,
  TABLE_PATH,
} from '../tables/table-requests.ts';

/** The most rows, and values, of one page of JSON. */
const MAX_PAGE_ROWS = 10_000;
const MAX_CELLS = 1_000_000;
/** Bytes of cached histograms. */
const CACHED_HISTOGRAMS = 8 << 20;

const texts = z.union([z.string(), z.array(z.string()).max(5_000)]).optional();
const rowsQuery = z.strictObject({
  offset: queryInteger({ min: 0, max: Number.MAX_SAFE_INTEGER, default: 0 }),
  limit: queryInteger({ min: 1, max: MAX_EXPORTED_ROWS, default: 100 }).describe(
    `At most ${MAX_PAGE_ROWS} as JSON.`,
  ),
  columns: texts.describe('Names, separated by commas; repeatable, for names that hold a comma.'),
  sort: texts.describe('Names, separated by commas, `-` before one for descending; repeatable.'),
  filter: texts.describe('column:op:value; repeatable: rows pass all. op: eq ne lt le gt ge null.'),
});
const histogramQuery = z.strictObject({
  column: z.string(),
  bins: queryInteger({ min: 1, max: 1_000, default: 20 }),
});
const value = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const columnItem = z
  .object({
    name: z.string(),
    type: z.enum(['boolean', 'integer', 'number', 'date', 'time', 'timestamp', 'text']),
    min: value,
    max: value,
    nulls: z.number().int(),
    unit: z.string().optional().describe('As the file names it.'),
    exact: z
      .literal(true)
      .optional()
      .describe('Integers pass 2^53: values, `min`, `max` and bins are texts.'),
  })
  .meta({ id: 'Column' });
const dialectRecord = z
  .object({
    encoding: z.enum(ENCODINGS),
    delimiter: z.string(),
    quote: z.string(),
    decimal: z.enum(['.', ',']),
    header: z.boolean(),
    lineBreak: z.enum(['LF', 'CRLF', 'CR', 'mixed']),
    comment: z.string().nullable(),
    skip: z.number().int().describe('Lines before the first row.'),
    units: z.boolean(),
    nulls: z.array(z.string()),
  })
  .meta({ id: 'CsvDialect', description: 'What a CSV file is like, as found or asked for.' });
const rowsPage = z
  .object({
    offset: z.number().int(),
    total: z.number().int().describe('Rows of the whole table or view.'),
    columns: z.array(z.string()),
    rows: z.array(z.array(value)),
  })
  .meta({ id: 'TableRows' });
const bin = z
  .object({ from: value, to: value, count: z.number().int() })
  .meta({ id: 'HistogramBin' });
const histogramRecord = z
  .object({
    column: z.string(),
    nulls: z.number().int(),
    bins: z.array(bin).optional(),
    values: z
      .array(z.object({ value, count: z.number().int() }).meta({ id: 'ValueCount' }))
      .optional(),
  })
  .meta({ id: 'Histogram' });

/** Table artifacts: metadata, rows, histograms, and the Parquet file. */
export default routes('json-body', (router, api) => {
  const { columns: columnsOf, reader } = api.tables;
  const histograms = new LRUCache<string, Buffer>({ maxSize: CACHED_HISTOGRAMS });

  resource(router, TABLE_PATH, {
    delete: operation({
      id: 'removeTable',
      topic: 'tables',
      summary: 'Remove a table artifact',
      details: 'With the sorted and filtered views of it.',
      headers: ['If-Match'],
      answers: { 204: 'Removed.' },
      errors: ['not_found', 'forbidden', 'precondition_failed'],
      handle: ({ req, res }) => removeArtifact(api, { req, res, kind: 'table' }),
    }),
  });

  resource(router, `${TABLE_PATH}/metadata`, {
    get: operation({
      id: 'getTable',
      topic: 'tables',
      summary: "Look at a table's columns",
      headers: ['If-None-Match'],
      answers: {
        200: {
          means: 'The columns, each with its type, least and greatest value and missing values.',
          json: z
            .object({
              rows: z.number().int(),
              columns: z.array(columnItem),
              dialect: dialectRecord.optional(),
            })
            .meta({ id: 'Table' }),
        },
        304: 'Unchanged.',
      },
      errors: ['not_found', 'conflict'],
      handle: async ({ req, res }) => {
        const table = await findTable(api, req, res);
        if (isUnchanged(req, res, table)) return;
        const columns = await columnsOf.find(api, table);
        const bytes = Buffer.from(metadataText(table, columns));
        await api.memory.reserve(res, bytes.length);
        res.type('application/json').send(bytes);
      },
    }),
  });

  resource(router, `${TABLE_PATH}/rows`, {
    get: operation({
      id: 'readRows',
      topic: 'tables',
      summary: 'Read rows of a table',
      details:
        'By `Accept` as JSON (at most 10,000 rows), as CSV (RFC 4180) or as a stream of Apache Arrow (at most 1,000,000 rows); an answer of these that ends early is cut, so check that it is whole. In the order of the file, or of `sort`, where equal rows keep that of the file and missing values come last. Integers are exact; in a column that is `exact` they are texts, since JSON numbers beyond 2^53 are rounded by most clients; dates and times are ISO 8601; NaN and the infinities are texts. The first request of a sorted or filtered view waits for the job that makes it, as a launch does; a missing value passes no filter but `null`.',
      query: rowsQuery,
      headers: ['If-None-Match', 'Prefer'],
      answers: {
        200: {
          means: 'The rows; as CSV with a line of names, a missing value as nothing at all.',
          json: rowsPage,
          types: Object.keys(ROW_TYPES).filter(type => type !== 'application/json'),
        },
        202: answerWithLocation(
          'The view is still being made; ask again.',
          'The job, where it is yours.',
          viewJob,
        ),
        304: 'Unchanged.',
      },
      errors: ['invalid_input', 'not_found', 'payload_too_large', 'too_many_requests', 'conflict'],
      handle: async ({ req, res, query }) => {
        const table = await findTable(api, req, res);
        const { offset, limit, ...given } = query();
        const known = await columnsOf.find(api, table);
        const columns = parseColumns(given.columns, known);
        const sort = parseSort(given.sort, known);
        const filter = parseFilter(given.filter, known);
        const format = negotiateFormat(req, res);
        if (format === 'json') checkPageSize(limit, columns);
        if (isUnchanged(req, res, table, format)) return;
        const isPlain = sort.length === 0 && filter.length === 0;
        const view = isPlain
          ? { key: table.object, size: table.size, rows: table.rows }
          : await materializeView(api, { req, res, table, view: { sort, filter } });
        if (!view) return;
        const end = Math.min(view.rows, offset + limit);
        if (format !== 'json') {
          const rows = { columns, start: Math.min(offset, end), end };
          const given = {
            reader,
            file: view,
            format,
            rows,
            reading: readFor(api, res),
            name: table.aid,
          };
          return sendExport(req, res, given);
        }
        const exact = known.filter(isExact).map(column => column.name);
        const task = { kind: 'rows' as const, columns, exact, start: offset, end };
        const rows =
          offset >= end ? '[]' : (await reader.read(view, task, readFor(api, res))).bytes;
        const head = JSON.stringify({ offset, total: view.rows, columns }).slice(0, -1);
        sendParts(res, [`${head},"rows":`, rows, '}']);
      },
    }),
  });

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
        const column = findColumn('column', name, await columnsOf.find(api, table));
        if (isUnchanged(req, res, table)) return;
        const { nulls, type, top = [] } = column;
        const head = JSON.stringify({ column: name, nulls }).slice(0, -1);
        if (type === 'text') return sendParts(res, [`${head},"values":`, JSON.stringify(top), '}']);
        const key = JSON.stringify([table.object, name, type === 'boolean' ? 0 : bins]);
        const file = { key: table.object, size: table.size };
        const counts =
          histograms.get(key) ??
          (await reader.read(file, { kind: 'histogram', column, bins }, readFor(api, res))).bytes;
        histograms.set(key, counts, { size: counts.length + key.length });
        sendParts(res, [`${head},"${type === 'boolean' ? 'values' : 'bins'}":`, counts, '}']);
      },
    }),
  });

  resource(router, `${TABLE_PATH}/data`, {
    get: operation({
      id: 'fetchTableFile',
      topic: 'tables',
      summary: 'Retrieve a table as Parquet',
      headers: ['Range', 'If-Range', 'If-None-Match', 'If-Match'],
      answers: rangeAnswers(['application/vnd.apache.parquet'], 'The whole file.'),
      errors: ['not_found', 'range_not_satisfiable', 'precondition_failed'],
      handle: async ({ req, res }) => {
        const { aid, object } = await findTable(api, req, res);
        setAttachment(res, `${aid}.parquet`);
        await sendObject(api, req, res, { key: object, type: 'application/vnd.apache.parquet' });
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

/** Integers are stored as text. */
function metadataText(
  { rows, dialect }: { rows: number; dialect: CsvDialect | null },
  columns: ColumnStatistics[],
): string {
  const items = columns.map(column => {
    const { name, type, min, max, nulls, unit } = column;
    const exact = isExact(column);
    const write = (value: unknown) =>
      type === 'integer' && value !== null && !exact ? String(value) : JSON.stringify(value);
    return `{"name":${JSON.stringify(name)},"type":"${type}","min":${write(min)},"max":${write(max)},"nulls":${nulls}${unit ? `,"unit":${JSON.stringify(unit)}` : ''}${exact ? ',"exact":true' : ''}}`;
  });
  const end = dialect ? `,"dialect":${JSON.stringify(dialect)}` : '';
  return `{"rows":${rows},"columns":[${items.join(',')}]${end}}`;
}
