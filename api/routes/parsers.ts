import { z } from 'zod';
import { ARTIFACT_KINDS, PARSERS } from '../../shared/uploads/parsers.ts';
import { entityTag, sendRecord } from '../http/conditional-requests.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { operation } from '../openapi/operation.ts';

const parserRecord = z
  .object({
    name: z.string(),
    meaning: z.string(),
    extensions: z.array(z.string()).describe('How the names of such files end.'),
    makes: z.enum([...ARTIFACT_KINDS, 'any']),
    parameters: z.record(z.string(), z.unknown()).meta({ description: 'A JSON Schema.' }),
  })
  .meta({ id: 'Parser' });

/** Parameters are described by JSON Schema (2020-12). */
const record = {
  items: Object.entries(PARSERS).map(([name, { meaning, extensions, makes, parameters }]) => ({
    name,
    meaning,
    extensions: [...extensions],
    makes,
    parameters: z.toJSONSchema(parameters, { io: 'input' }),
  })),
};

/** The parsers of uploads. */
export default routes('json-body', router => {
  resource(router, '/configuration/parsers', {
    get: operation({
      id: 'listParsers',
      topic: 'uploads',
      summary: 'List the parsers of uploads, with their parameters',
      headers: ['If-None-Match'],
      answers: {
        200: {
          means: 'The parsers.',
          json: z.object({ items: z.array(parserRecord) }).meta({ id: 'ParserList' }),
        },
        304: 'Unchanged.',
      },
      handle: ({ req, res }) =>
        sendRecord({ req, res }, { tag: entityTag(record), record: () => record }),
    }),
  });
});
