import { z } from 'zod';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { operation } from '../openapi/operation.ts';

const setting = z
  .object({
    name: z.string(),
    value: z.string().nullable().describe('Null where it is a secret, or not set.'),
    from: z.enum(['environment', 'default', 'unset']),
    secret: z.boolean(),
    meaning: z.string(),
  })
  .meta({ id: 'Setting' });

/** The settings of the API's process, for server administrators. */
export default routes('json-body', (router, api) => {
  resource(router, '/settings', {
    get: operation({
      id: 'listSettings',
      topic: 'operations',
      summary: 'List the settings that are in force',
      for: 'administrators',
      details: 'As the API that answers was started. Of a secret only whether it is set.',
      answers: {
        200: {
          means: 'All of them.',
          json: z.object({ items: z.array(setting) }).meta({ id: 'SettingList' }),
        },
      },
      handle: ({ res }) => {
        res.json({ items: api.settings });
      },
    }),
  });
});
