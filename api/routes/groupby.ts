import { z } from 'zod';
import { MAX_GROUPS } from '../../shared/jobs/payloads/table-query.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { operation } from '../openapi/operation.ts';
import { groupColumns } from '../tables/group-columns.ts';
import { materializeView, VIEW_ERRORS, viewAnswers } from '../tables/materialize-view.ts';
import { parseFilter, parseGroups } from '../tables/table-query.ts';
import {
  cellValue,
  isUnchanged,
  openTable,
  readFor,
  sendParts,
  TABLE_PATH,
} from '../tables/table-requests.ts';

const texts = z.union([z.string(), z.array(z.string()).min(1).max(5_000)], {
  error: 'must be given, once or several times',
});
const groupQuery = z.strictObject({
  by: texts.describe('Names, separated by commas; repeatable.'),
  aggregate: texts
    .optional()
    .describe('count, or one of count sum mean min max, a colon and a column; repeatable.'),
  filter: texts.optional().describe('As of rows.'),
});
const groupsRecord = z
  .object({
    columns: z
      .array(z.string())
      .describe('Those of `by`, then the aggregates as they were asked for.'),
    rows: z.array(z.array(cellValue)),
  })
  .meta({ id: 'TableGroups' });

/** Groups of a table's rows. */
export default routes('json-body', (router, api) => {
  resource(router, `${TABLE_PATH}/groupby`, {
    get: operation({
      id: 'groupRows',
      topic: 'tables',
      summary: 'Group the rows of a table',
      details: `A row for each combination of values in the columns of \`by\`, at most ${MAX_GROUPS}, sorted by them with missing values last; by default with the number of its rows. Aggregates leave missing values out, and \`min\` and \`max\` NaN too. A sum of integers is exact, and a text where it passes 2^53. The first request waits for the job that makes it, as one of sorted rows does.`,
      query: groupQuery,
      headers: ['If-None-Match', 'Prefer'],
      answers: viewAnswers('The groups.', groupsRecord),
      errors: VIEW_ERRORS,
      handle: async ({ req, res, query }) => {
        const { table, columns: known } = await openTable(api, { req, res });
        const { by, aggregate, filter: given } = query();
        const groups = parseGroups({ by, aggregate }, known);
        const filter = parseFilter(given, known);
        if (isUnchanged({ req, res }, table)) return;
        const view = await materializeView(api, {
          req,
          res,
          table,
          view: { sort: [], filter, groups },
        });
        if (!view) return;
        const { names, ...columns } = groupColumns(groups, known);
        const task = { kind: 'rows' as const, ...columns, start: 0, end: view.rows };
        const { bytes } =
          view.rows === 0
            ? { bytes: '[]' }
            : await api.tableReader.read(view, task, readFor(api, { req, res }, table));
        const head = JSON.stringify({ columns: names }).slice(0, -1);
        sendParts(res, [`${head},"rows":`, bytes, '}']);
      },
    }),
  });
});
