import { z } from 'zod';
import { optionalQueryInteger } from '../http/query-integer.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { invalidInput } from '../http/validate.ts';
import { zonedTime } from '../http/zoned-time.ts';
import { readStatistics, statistic } from '../monitoring/job-statistics.ts';
import { operation } from '../openapi/operation.ts';

const DAY = 86_400;
const DAY_MS = DAY * 1_000;
const KEPT_DAYS = 30;
const MAX_STEPS = 3_000;
/** Steps that one reads easily; the default gives 100 to 300 of them. */
const STEPS = [60, 300, 900, 3_600, 3 * 3_600];

const query = z.strictObject({
  since: zonedTime.optional().describe('A day ago where it is left out; 30 days are kept.'),
  step: optionalQueryInteger({ min: 60, max: DAY }).describe(
    'Seconds. Where it is left out, such that there are some 200 steps.',
  ),
});

/** GET /stats: how jobs fared over time, for server administrators. */
export default routes('json-body', (router, api) => {
  resource(router, '/stats', {
    get: operation({
      id: 'fetchStatistics',
      topic: 'operations',
      summary: 'How jobs fared over time, by kind',
      for: 'administrators',
      details:
        'Counted once a minute by the workers, up to a minute or two ago. A step without jobs of a kind is left out. Medians and 95th percentiles are bounds of a histogram (1, 2, 5, 10, …): no longer than so.',
      query,
      answers: {
        200: {
          means: 'By time and kind.',
          json: z
            .object({ since: z.iso.datetime(), step: z.number().int(), items: z.array(statistic) })
            .meta({ id: 'JobStatistics' }),
        },
      },
      handle: async ({ res, query }) => {
        const given = query();
        const now = Date.now();
        const asked = given.since === undefined ? now - DAY_MS : Date.parse(given.since);
        const since = new Date(Math.max(asked, now - KEPT_DAYS * DAY_MS));
        const span = (now - since.getTime()) / 1_000;
        const step = given.step ?? STEPS.find(each => span / each <= 300) ?? DAY;
        if (span / step > MAX_STEPS) {
          throw invalidInput(
            [
              {
                field: 'step',
                problem: `must be at least ${Math.ceil(span / MAX_STEPS)} for this time`,
              },
            ],
            'Ask for longer steps, or since a later time.',
          );
        }
        const items = await readStatistics(api.database.db, { since, step });
        const body = { since: since.toISOString(), step, items };
        res.json(body);
      },
    }),
  });
});
