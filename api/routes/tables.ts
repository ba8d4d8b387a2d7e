import { z } from 'zod';
import type { ColumnStatistics, CsvDialect } from '../../shared/database/schema.ts';
import { COLUMN_TYPES, ENCODINGS } from '../../shared/uploads/parsers.ts';
import { setAttachment } from '../http/attachment.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { sendObject } from '../http/send-object.ts';
import { operation, rangeAnswers } from '../openapi/operation.ts';
import { encodeValue, isExact } from '../tables/encode-value.ts';
import { findRows, VIEW_ERRORS, viewPending } from '../tables/materialize-view.ts';
import { removeArtifact } from '../tables/remove-artifact.ts';
import { filterQuery, parseFilter, parseSort, sortQuery } from '../tables/table-query.ts';
import {
  cellValue,
  findTable,
  isUnchanged,
  openTable,
  readFor,
  sendParts,
  TABLE_PATH,
} from '../tables/table-requests.ts';

const oddValues = z
  .object({
    type: z.enum(COLUMN_TYPES).describe('Of nearly all values.'),
    others: z.number().int().describe('How many values are not of it.'),
    first: z
      .object({ row: z.number().int(), value: z.string() })
      .meta({ id: 'OddValue', description: 'The first of these; rows count from 0.' }),
  })
  .meta({ id: 'OddValues' });
const columnItem = z
  .object({
    name: z.string(),
    type: z.enum(COLUMN_TYPES),
    min: cellValue,
    max: cellValue,
    nulls: z.number().int(),
    unit: z.string().optional().describe('As the file names it.'),
    nearly: oddValues
      .optional()
      .describe('Why the column of a CSV file is text: a few values are of no other type.'),
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
    header: z.boolean().describe('Whether the first row is the names of the columns.'),
    headerGuessed: z
      .literal(true)
      .optional()
      .describe(
        'There are only texts: the first row is taken for names by its look. Upload with `header: false` if it is data.',
      ),
    lineBreak: z.enum(['LF', 'CRLF', 'CR', 'mixed']),
    comment: z.string().nullable(),
    skip: z.number().int().describe('Lines before the first row.'),
    units: z.boolean(),
    nulls: z.array(z.string()),
  })
  .meta({ id: 'CsvDialect', description: 'What a CSV file is like, as found or asked for.' });
/** Bytes of memory that the metadata of a column takes. */
const COLUMN_BYTES = 2_000;
const viewQuery = z.strictObject({ sort: sortQuery, filter: filterQuery });

/** Table artifacts: metadata, and the Parquet file. */
export default routes('json-body', (router, api) => {
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
      details:
        'The least and greatest text of a column are cut at 200 characters, and at fewer in a table of more than 1,000 columns.',
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
        const table = await findTable(api, { req, res });
        if (isUnchanged({ req, res }, table)) return;
        const { db } = api.database;
        const { length } = await api.columnCache.find(db, table);
        const { reserveMemory, confirm } = readFor(api, { req, res }, table);
        await reserveMemory(length * COLUMN_BYTES);
        const columns = await api.columnCache.describe(db, table);
        await confirm();
        sendParts(res, [metadataText(table, columns)]);
      },
    }),
  });

  resource(router, `${TABLE_PATH}/data`, {
    get: operation({
      id: 'fetchTableFile',
      topic: 'tables',
      summary: 'Retrieve a table as Parquet',
      details:
        'All of it, or the rows of a view, in its order. The first request of a view waits for the job that makes it, as one of its rows does.',
      query: viewQuery,
      headers: ['Range', 'If-Range', 'If-None-Match', 'If-Match', 'Prefer'],
      answers: {
        ...rangeAnswers(['application/vnd.apache.parquet'], 'The whole file.'),
        202: viewPending,
      },
      errors: [...VIEW_ERRORS, 'range_not_satisfiable', 'precondition_failed'],
      handle: async ({ req, res, query }) => {
        const { table, columns: known } = await openTable(api, { req, res });
        const asked = query();
        const sort = parseSort(asked.sort, known);
        const filter = parseFilter(asked.filter, known);
        const view = await findRows(api, { req, res, table, sort, filter });
        if (!view) return;
        setAttachment(res, `${table.aid}.parquet`);
        await sendObject(
          api,
          { req, res },
          { key: view.key, type: 'application/vnd.apache.parquet' },
        );
      },
    }),
  });
});

/** Integers are stored as text. */
function metadataText(
  { rows, dialect }: { rows: number; dialect: CsvDialect | null },
  columns: ColumnStatistics[],
): string {
  const items = columns.map(column => {
    const { name, type, min, max, nulls, unit, nearly } = column;
    const exact = isExact(column);
    const write = (value: unknown) =>
      type === 'integer' && value !== null && !exact ? String(value) : encodeValue(value);
    return `{"name":${JSON.stringify(name)},"type":"${type}","min":${write(min)},"max":${write(max)},"nulls":${nulls}${unit ? `,"unit":${JSON.stringify(unit)}` : ''}${nearly ? `,"nearly":${JSON.stringify(nearly)}` : ''}${exact ? ',"exact":true' : ''}}`;
  });
  const end = dialect ? `,"dialect":${JSON.stringify(dialect)}` : '';
  return `{"rows":${rows},"columns":[${items.join(',')}]${end}}`;
}
