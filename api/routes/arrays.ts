import { z } from 'zod';
import { ARRAY_TYPES } from '../../shared/arrays/npy-header.ts';
import type { Bound } from '../../shared/database/schema.ts';
import { findArray, openArray } from '../arrays/find-array.ts';
import { parseSlice } from '../arrays/parse-slice.ts';
import { sendSlice } from '../arrays/send-slice.ts';
import { setAttachment } from '../http/attachment.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { sendObject } from '../http/send-object.ts';
import { operation, rangeAnswers } from '../openapi/operation.ts';
import { encodeValue, isExact } from '../tables/encode-value.ts';
import { removeArtifact } from '../tables/remove-artifact.ts';
import { cellValue, isUnchanged, sendParts } from '../tables/table-requests.ts';

const ARRAY_PATH = '/models/:mid/arrays/:aid';

const shape = z.array(z.number().int()).describe('The length of each dimension.');
const arrayRecord = z
  .object({
    shape,
    type: z.enum(['boolean', 'integer', 'number']),
    min: cellValue,
    max: cellValue,
    unit: z.string().optional().describe('As the file names it.'),
    exact: z
      .literal(true)
      .optional()
      .describe('Integers pass 2^53: values, `min` and `max` are texts.'),
  })
  .meta({ id: 'ArrayMetadata' });
const arraySlice = z
  .object({
    shape,
    values: z.array(cellValue).describe('In C order: the last index changes fastest.'),
  })
  .meta({ id: 'ArraySlice' });
const sliceQuery = z.strictObject({
  slice: z
    .string()
    .max(500)
    .optional()
    .describe('For each dimension an index or a range, such as `0:10,5`; absent: all of it.'),
});

/** Array artifacts: metadata, slices, and the NumPy file. */
export default routes('json-body', (router, api) => {
  resource(router, ARRAY_PATH, {
    get: operation({
      id: 'readArray',
      topic: 'tables',
      summary: 'Read a slice of an array',
      details:
        'At most 1,000,000 values that lie within 64 MiB. A dimension with an index is not in the shape; a range may go beyond the end, as in NumPy. NaN and the infinities are texts, and so are the integers of an array that is `exact`.',
      query: sliceQuery,
      headers: ['If-None-Match'],
      answers: { 200: { means: 'The values.', json: arraySlice }, 304: 'Unchanged.' },
      errors: ['invalid_input', 'not_found', 'conflict'],
      handle: async ({ req, res, query }) => {
        const artifact = await findArray(api, { req, res });
        const { slice } = query();
        const array = await openArray(api, artifact);
        const extents = parseSlice(slice, array.shape);
        if (isUnchanged({ req, res }, artifact)) return;
        await sendSlice(api, res, { array, extents });
      },
    }),
    delete: operation({
      id: 'removeArray',
      topic: 'tables',
      summary: 'Remove an array artifact',
      headers: ['If-Match'],
      answers: { 204: 'Removed.' },
      errors: ['not_found', 'forbidden', 'precondition_failed'],
      handle: ({ req, res }) => removeArtifact(api, { req, res, kind: 'array' }),
    }),
  });

  resource(router, `${ARRAY_PATH}/metadata`, {
    get: operation({
      id: 'getArray',
      topic: 'tables',
      summary: 'Look at the shape of an array',
      headers: ['If-None-Match'],
      answers: {
        200: { means: 'Shape, type, least and greatest value.', json: arrayRecord },
        304: 'Unchanged.',
      },
      errors: ['not_found', 'conflict'],
      handle: async ({ req, res }) => {
        const artifact = await findArray(api, { req, res });
        const array = await openArray(api, artifact);
        if (isUnchanged({ req, res }, artifact)) return;
        const { min, max, unit } = array.column;
        const { type } = ARRAY_TYPES[array.descr];
        const exact = isExact(array.column);
        const write = (value: Bound) =>
          encodeValue(type === 'integer' && value !== null && !exact ? Number(value) : value);
        const head = JSON.stringify({ shape: array.shape, type }).slice(0, -1);
        const more = `${unit ? `,"unit":${JSON.stringify(unit)}` : ''}${exact ? ',"exact":true' : ''}`;
        sendParts(res, [`${head},"min":${write(min)},"max":${write(max)}${more}}`]);
      },
    }),
  });

  resource(router, `${ARRAY_PATH}/data`, {
    get: operation({
      id: 'fetchArrayFile',
      topic: 'tables',
      summary: 'Retrieve an array as a NumPy file',
      headers: ['Range', 'If-Range', 'If-None-Match', 'If-Match'],
      answers: rangeAnswers(['application/octet-stream'], 'The whole file.'),
      errors: ['not_found', 'range_not_satisfiable', 'precondition_failed'],
      handle: async ({ req, res }) => {
        const { aid, object } = await findArray(api, { req, res });
        setAttachment(res, `${aid}.npy`);
        await sendObject(api, { req, res }, { key: object, type: 'application/octet-stream' });
      },
    }),
  });
});
