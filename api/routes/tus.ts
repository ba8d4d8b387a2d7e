import { z } from 'zod';
import type { ErrorCode } from '../../shared/errors/errors.ts';
import { refuseIfMatchTag } from '../http/conditional-requests.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { parseInput } from '../http/validate.ts';
import { currentUser, refuseReadToken } from '../identity/current-user.ts';
import { operation } from '../openapi/operation.ts';
import { uploadFromMetadata } from '../tus/metadata.ts';
import {
  CHECKSUM_ALGORITHMS,
  OFFSET_STREAM,
  readLength,
  refuseOtherExtensions,
  requireOffsetStream,
  requireVersion,
  TUS_EXTENSIONS,
  TUS_VERSION,
} from '../tus/protocol.ts';
import { TusUploads } from '../tus/tus-uploads.ts';
import { beginUpload, newUpload } from '../uploads/begin-upload.ts';
import { readUploadKey } from '../uploads/find-upload.ts';
import { refuseEncoding } from '../uploads/refuse-other-content.ts';

const RESUMABLE = { 'Tus-Resumable': TUS_VERSION };
const AT_OFFSET = {
  ...RESUMABLE,
  'Upload-Offset': 'Bytes that are stored.',
  'Upload-Expires': 'When the upload is given up, if nothing more comes. Absent once it is whole.',
};
const bytes = { type: OFFSET_STREAM, means: 'Bytes of the file.', schema: z.file() };

/** What a request with bytes may be refused for. */
const APPEND_ERRORS = [
  'invalid_input',
  'bad_request',
  'forbidden',
  'not_found',
  'conflict',
  'precondition_failed',
  'payload_too_large',
  'locked',
  'checksum_mismatch',
  'insufficient_storage',
  'unsupported_media_type',
] satisfies ErrorCode[];

/** Resumable uploads by tus 1.0: one file is one upload, which is parsed once its last byte has come. */
export default routes('raw-body', (router, api) => {
  const uploads = new TusUploads(api);
  const schema = newUpload(api.config.LIMIT_NAME_LENGTH);

  resource(router, '/tus', {
    options: operation({
      id: 'describeTus',
      topic: 'uploads',
      summary: 'Ask what of tus is supported',
      answers: {
        204: {
          means: 'In headers.',
          headers: {
            'Tus-Version': TUS_VERSION,
            'Tus-Extension': TUS_EXTENSIONS.join(','),
            'Tus-Checksum-Algorithm': CHECKSUM_ALGORITHMS.join(','),
          },
        },
      },
      handle: ({ res }) => {
        res
          .status(204)
          .set(RESUMABLE)
          .set('Tus-Version', TUS_VERSION)
          .set('Tus-Extension', TUS_EXTENSIONS.join(','))
          .set('Tus-Checksum-Algorithm', CHECKSUM_ALGORITHMS.join(','))
          .end();
      },
    }),
    post: operation({
      id: 'beginTusUpload',
      topic: 'uploads',
      summary: 'Begin an upload by tus',
      details:
        '`Upload-Metadata` has `mid`, `parser`, `aid` (the name of the artifact), `input` (false by default) and the parameters of the parser, as texts or as texts of JSON; what clients say of a file by themselves (`filename`, `filetype`, `name`, `type`, `relativePath`) is passed over. The body may have the first bytes; of a request that is refused or cut nothing stays.',
      bodies: [bytes],
      isBodyOptional: true,
      answers: {
        201: {
          means: 'The upload takes bytes.',
          headers: { ...AT_OFFSET, Location: 'The upload.' },
        },
      },
      errors: [...APPEND_ERRORS, 'too_many_requests'],
      handle: async ({ req, res }) => {
        requireVersion({ req, res });
        refuseOtherExtensions(req);
        refuseEncoding(req);
        const length = readLength(req, 'Upload-Length');
        const metadata = req.get('Upload-Metadata') ?? '';
        const asked = parseInput(uploadFromMetadata(metadata), schema);
        const owner = currentUser(res).username;
        const uid = await beginUpload(api, owner, asked, { length, metadata });
        const offset = await uploads.takeFirstBytes({ uid, owner }, { req, res }, length);
        res.status(201).location(`/api/tus/${uid}`).set('Upload-Offset', String(offset)).end();
      },
    }),
  });

  resource(router, '/tus/:uid', {
    head: operation({
      id: 'getTusOffset',
      topic: 'uploads',
      summary: 'Ask from which offset an upload goes on',
      answers: {
        200: {
          means: 'In headers.',
          headers: {
            ...AT_OFFSET,
            'Upload-Length': 'Bytes of the whole.',
            'Upload-Metadata': 'As it was sent.',
          },
        },
      },
      errors: ['not_found', 'precondition_failed', 'locked'],
      handle: async ({ req, res }) => {
        // It ends what is being sent, and may begin the parse.
        refuseReadToken(res);
        requireVersion({ req, res });
        const key = readUploadKey({ req, res });
        const { offset, tus } = await uploads.resume(key, { req, res });
        // "The Server MUST prevent the client and/or proxies from caching the response."
        res
          .status(200)
          .set('Cache-Control', 'no-store')
          .set('Upload-Offset', String(offset))
          .set('Upload-Length', String(tus.length))
          .set('Upload-Metadata', tus.metadata)
          .end();
      },
    }),
    patch: operation({
      id: 'appendTusBytes',
      topic: 'uploads',
      summary: 'Append bytes to an upload',
      details:
        'From `Upload-Offset` on, which must be where the upload ends. What comes of a body that is cut is kept, unless `Upload-Checksum` was given. With the last byte parsing begins. Where a proxy lets no PATCH through, POST with `X-HTTP-Method-Override: PATCH` is the same.',
      bodies: [bytes],
      answers: { 204: { means: 'All bytes are stored.', headers: AT_OFFSET } },
      errors: APPEND_ERRORS,
      handle: async ({ req, res }) => {
        requireVersion({ req, res });
        requireOffsetStream(req);
        refuseEncoding(req);
        const offset = readLength(req, 'Upload-Offset');
        const end = await uploads.append(readUploadKey({ req, res }), { req, res }, offset);
        res.status(204).set('Upload-Offset', String(end)).end();
      },
    }),
    delete: operation({
      id: 'abandonTusUpload',
      topic: 'uploads',
      summary: 'Give an upload by tus up',
      headers: ['If-Match'],
      answers: { 204: { means: 'Its bytes are removed.', headers: RESUMABLE } },
      errors: ['not_found', 'conflict', 'precondition_failed'],
      handle: async ({ req, res }) => {
        requireVersion({ req, res });
        const key = readUploadKey({ req, res });
        await uploads.find(key);
        refuseIfMatchTag(req);
        await uploads.abandon(key);
        res.status(204).end();
      },
    }),
  });
});
