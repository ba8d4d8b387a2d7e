import { uploads } from '../../shared/database/schema.ts';
import { MAX_FILES } from '../../shared/uploads/uploads.ts';
import { checkIfMatch, sendRecord } from '../http/conditional-requests.ts';
import { pageOf, pageQuery, readPage } from '../http/pagination.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { currentUser } from '../identity/current-user.ts';
import { answerWithId, operation } from '../openapi/operation.ts';
import { beginUpload, newUpload } from '../uploads/begin-upload.ts';
import { endUpload, findParseJob } from '../uploads/end-upload.ts';
import { findUpload, readUploadKey } from '../uploads/find-upload.ts';
import { selectUploadsOf } from '../uploads/select-uploads.ts';
import {
  readParts,
  tagOf,
  toUploadRecord,
  toUploadSummary,
  uploadRecord,
  uploadSummary,
} from '../uploads/upload-record.ts';

/** Bytes of one part in the upload's record. */
const PART_BYTES = 120;

/** Upload sessions. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;

  resource(router, '/uploads', {
    get: operation({
      id: 'listUploads',
      topic: 'uploads',
      summary: 'List your upload sessions',
      query: pageQuery,
      answers: { 200: { means: 'A page of uploads.', json: pageOf('UploadPage', uploadSummary) } },
      handle: async ({ res, query }) => {
        const { rows, where } = selectUploadsOf(db, currentUser(res).username);
        const page = await readPage(rows, query(), { by: uploads.uid, key: 'id', where }, row =>
          toUploadSummary(row.upload, row.state),
        );
        res.json(page);
      },
    }),
    post: operation({
      id: 'beginUpload',
      topic: 'uploads',
      summary: 'Begin an upload into a model',
      details: `\`aids\` names the artifacts, one a file, at most ${MAX_FILES}; a parser that makes several of one file adds /name.`,
      body: newUpload(api.config.LIMIT_NAME_LENGTH),
      answers: { 201: answerWithId('The upload takes parts.', 'The upload.') },
      errors: ['forbidden', 'not_found', 'conflict'],
      handle: async ({ res, body }) => {
        const owner = currentUser(res).username;
        const uid = await beginUpload(api, owner, body());
        res.status(201).location(`/api/uploads/${uid}`).json({ id: uid });
      },
    }),
  });

  resource(router, '/uploads/:uid', {
    get: operation({
      id: 'getUpload',
      topic: 'uploads',
      summary: 'Look at an upload: what has arrived, and what became of it',
      headers: ['If-None-Match'],
      answers: { 200: { means: 'The upload.', json: uploadRecord }, 304: 'Unchanged.' },
      errors: ['not_found'],
      handle: async ({ req, res }) => {
        const { upload } = await findUpload(db, readUploadKey({ req, res }));
        const job = await findParseJob(db, upload);
        await api.requestMemory.reserveIfLarge(res, upload.parts * PART_BYTES);
        // Read after the record: a part that arrives in between is shown under the older tag, and never missed.
        const stored = await readParts(db, upload.uid);
        sendRecord(
          { req, res },
          {
            tag: tagOf(upload.version, job),
            record: () => toUploadRecord(upload, job, stored),
          },
        );
      },
    }),
    delete: operation({
      id: 'abandonUpload',
      topic: 'uploads',
      summary: 'Give an upload up',
      details: 'Its parts are removed and its copies cancelled.',
      headers: ['If-Match'],
      answers: { 204: 'Upload session deleted.' },
      errors: ['not_found', 'conflict'],
      handle: async ({ req, res }) => {
        const key = readUploadKey({ req, res });
        await endUpload(api, key, (version, job) => checkIfMatch(req, tagOf(version, job)));
        res.statusMessage = 'Upload session deleted.';
        res.status(204).end();
      },
    }),
  });
});
