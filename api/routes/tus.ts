import type { Request, Response } from 'express';
import { z } from 'zod';
import type { UploadRow } from '../../shared/database/schema.ts';
import { type ErrorCode, notFound, WindlassError } from '../../shared/errors/errors.ts';
import { assertStorage } from '../../shared/quotas/storage-limits.ts';
import { assertUploadOpen } from '../../shared/uploads/uploads.ts';
import { refuseIfMatchTag } from '../http/conditional-requests.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { parseInput } from '../http/validate.ts';
import { currentUser, refuseReadToken } from '../identity/current-user.ts';
import { identifyLateSender } from '../identity/identify-sender.ts';
import { startJobUnder } from '../jobs/requests/start-requested-job.ts';
import { disableBodyTimeouts } from '../middleware/limit-body-time.ts';
import { operation } from '../openapi/operation.ts';
import { otherOffset, UploadAppender } from '../tus/append-upload.ts';
import { uploadFromMetadata } from '../tus/metadata.ts';
import {
  CHECKSUM_ALGORITHMS,
  isOffsetStream,
  OFFSET_STREAM,
  readChecksum,
  readLength,
  refuseOtherExtensions,
  requireOffsetStream,
  requireVersion,
  TUS_EXTENSIONS,
  TUS_VERSION,
} from '../tus/protocol.ts';
import { acceptUpload } from '../uploads/accept-upload.ts';
import { beginUpload, newUpload } from '../uploads/begin-upload.ts';
import { endUpload } from '../uploads/end-upload.ts';
import { findUpload, readUploadKey, type UploadKey } from '../uploads/find-upload.ts';

const RESUMABLE = { 'Tus-Resumable': TUS_VERSION };
const AT_OFFSET = {
  ...RESUMABLE,
  'Upload-Offset': 'Bytes that are stored.',
  'Upload-Expires': 'When the upload is given up, if nothing more comes.',
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
] satisfies ErrorCode[];

/** Resumable uploads by tus 1.0: one file is one upload, which is parsed once its last byte has come. */
export default routes('raw-body', (router, api) => {
  const { db } = api.database;
  const appender = new UploadAppender(api);
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
        requireVersion(req, res);
        refuseOtherExtensions(req);
        const length = readLength(req, 'Upload-Length');
        const metadata = req.get('Upload-Metadata') ?? '';
        const asked = parseInput(uploadFromMetadata(metadata), schema);
        const owner = currentUser(res).username;
        const uid = await beginUpload(api, owner, asked, { length, metadata });
        const offset = await takeFirstBytes({ uid, owner }, req, res, length);
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
        requireVersion(req, res);
        const key = readUploadKey(req, res);
        await findTus(key);
        await appender.interrupt(key);
        const { upload, tus } = await findTus(key);
        const offset = offsetOf(upload, tus.length);
        // Its last byte came, but a process died before it began to parse.
        if (upload.job === null && offset === tus.length && upload.parts > 0)
          await finish(key, req, res).catch(throwAsLocked);
        // "The Server MUST prevent the client and/or proxies from caching the response."
        res
          .status(200)
          .set('Cache-Control', 'no-store')
          .set('Upload-Offset', String(offset))
          .set('Upload-Length', String(tus.length))
          .set('Upload-Metadata', tus.metadata);
        setExpires(res, upload);
        res.end();
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
      errors: [...APPEND_ERRORS, 'unsupported_media_type'],
      handle: async ({ req, res }) => {
        requireVersion(req, res);
        requireOffsetStream(req);
        const offset = await append(
          readUploadKey(req, res),
          req,
          res,
          readLength(req, 'Upload-Offset'),
        ).catch(throwAsLocked);
        res.status(204).set('Upload-Offset', String(offset)).end();
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
        requireVersion(req, res);
        const key = readUploadKey(req, res);
        await findTus(key);
        refuseIfMatchTag(req);
        await appender.interrupt(key);
        await endUpload(api, key);
        res.status(204).end();
      },
    }),
  });

  /** The offset after the body of the request that began the upload. If it fails, nobody is told where the upload is. */
  async function takeFirstBytes(
    key: UploadKey,
    req: Request,
    res: Response,
    length: number,
  ): Promise<number> {
    try {
      const { project, upload } = await findTus(key);
      const charge = { project, user: upload.owner, added: length };
      await assertStorage(db, { ...charge, limits: api.config });
      if (isOffsetStream(req) || length === 0) return await append(key, req, res, 0);
      setExpires(res, upload);
      return 0;
    } catch (error) {
      await endUpload(api, key).catch(() => {});
      throw error;
    }
  }

  /** Appends the request's body, and begins the parse after the last byte; the offset after it. */
  async function append(
    key: UploadKey,
    req: Request,
    res: Response,
    offset: number,
  ): Promise<number> {
    const checksum = readChecksum(req);
    const found = await findTus(key);
    const { upload, project, tus } = found;
    assertUploadOpen(found);
    const { length } = tus;
    await appender.interrupt(key);
    const now = offsetOf((await findTus(key)).upload, length);
    if (offset !== now) throw otherOffset(now);
    const announced = Number(req.get('Content-Length') ?? 0);
    if (announced > length - offset) throw tooLong(length - offset);
    const charge = { project, user: upload.owner, added: announced };
    await assertStorage(db, { ...charge, limits: api.config });
    disableBodyTimeouts(res);
    const identify = () => identifyLateSender(api, req, res);
    const end = await appender.append(req, { key, offset, length, checksum, identify });
    if (end === length) await finish(key, req, res);
    setExpires(res, upload);
    return end;
  }

  /** Begins the parse, unless another request has begun it. */
  async function finish(key: UploadKey, req: Request, res: Response): Promise<void> {
    try {
      // Without the key of the request: the upload is parsed once, and clients send one key with many uploads.
      await startJobUnder(api, { req, res, key: undefined }, async tx => {
        const { upload } = await findUpload(tx, key);
        return acceptUpload(tx, key, [upload.parts]);
      });
    } catch (error) {
      const isConflict = error instanceof WindlassError && error.code === 'conflict';
      if (!isConflict || (await findTus(key)).upload.job === null) throw error;
    }
  }

  async function findTus(key: UploadKey) {
    const found = await findUpload(db, key);
    const { tus } = found.upload;
    if (tus === null)
      throw notFound('this upload is not by tus.', 'Send its parts to …/files/(fid)/parts/(part).');
    return { ...found, tus };
  }

  /** "The server MUST send the Upload-Expires header in every PATCH response if the upload is going to expire." */
  function setExpires(res: Response, upload: UploadRow): void {
    const idle = api.config.UPLOAD_IDLE_TIMEOUT;
    const since = Math.max(upload.accessed.getTime(), Date.now() - 60_000);
    if (idle > 0) res.set('Upload-Expires', new Date(since + idle * 1_000).toUTCString());
  }
});

/** The parts are removed once they are parsed. */
const offsetOf = (upload: UploadRow, length: number) =>
  upload.job === null ? upload.bytes : length;

/** After 429 clients give up, or begin again from the first byte; after 423 they repeat the request. */
function throwAsLocked(error: unknown): never {
  if (!(error instanceof WindlassError) || error.code !== 'too_many_requests') throw error;
  throw new WindlassError('locked', {
    detail: 'Locked: all bytes are stored, but you have too many open jobs for another parse.',
    hint: 'HEAD begins the parse as soon as some of them have ended. LIMIT_OPEN_JOBS sets the limit.',
    headers: { 'Retry-After': '10' },
  });
}

const tooLong = (left: number) =>
  new WindlassError('payload_too_large', {
    detail: `Payload too large: Upload-Length leaves ${left} bytes.`,
    hint: 'Send as many bytes as Upload-Length says.',
  });
