import { setAttachment } from '../http/attachment.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { sendObject } from '../http/send-object.ts';
import { operation, rangeAnswers } from '../openapi/operation.ts';
import { findStoredArtifact } from '../tables/find-artifact.ts';
import { removeArtifact } from '../tables/remove-artifact.ts';

/** File artifacts. */
export default routes('json-body', (router, api) => {
  resource(router, '/models/:mid/files/:aid', {
    get: operation({
      id: 'fetchArtifactFile',
      topic: 'models',
      summary: 'Retrieve a file artifact',
      headers: ['Range', 'If-Range', 'If-None-Match', 'If-Match'],
      answers: rangeAnswers(['application/octet-stream'], 'The whole file.'),
      errors: ['not_found', 'range_not_satisfiable', 'precondition_failed'],
      handle: async ({ req, res }) => {
        const { aid, object } = await findStoredArtifact(api, { req, res, kind: 'file' });
        setAttachment(res, aid);
        await sendObject(api, { req, res }, { key: object, type: 'application/octet-stream' });
      },
    }),
    delete: operation({
      id: 'removeArtifactFile',
      topic: 'models',
      summary: 'Remove a file artifact',
      headers: ['If-Match'],
      answers: { 204: 'Removed.' },
      errors: ['not_found', 'forbidden', 'precondition_failed'],
      handle: ({ req, res }) => removeArtifact(api, { req, res, kind: 'file' }),
    }),
  });
});
