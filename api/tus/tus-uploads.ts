import type { Response } from 'express';
import type { UploadRow } from '../../shared/database/schema.ts';
import { notFound, WindlassError } from '../../shared/errors/errors.ts';
import { assertStorage } from '../../shared/quotas/storage-limits.ts';
import { assertUploadOpen } from '../../shared/uploads/uploads.ts';
import type { ApiContext } from '../context.ts';
import type { Exchange } from '../http/exchange.ts';
import { identifyLateSender } from '../identity/identify-sender.ts';
import { startJobUnder } from '../jobs/requests/start-requested-job.ts';
import { disableBodyTimeouts } from '../middleware/limit-body-time.ts';
import { acceptUpload } from '../uploads/accept-upload.ts';
import { endUpload } from '../uploads/end-upload.ts';
import { findUpload, type UploadKey } from '../uploads/find-upload.ts';
import { otherOffset, UploadAppender } from './append-upload.ts';
import { isOffsetStream, readChecksum } from './protocol.ts';

/** Uploads of one file each, which are parsed once their last byte has come. */
export class TusUploads {
  readonly #api: ApiContext;
  readonly #appender: UploadAppender;

  constructor(api: ApiContext) {
    this.#api = api;
    this.#appender = new UploadAppender(api);
  }

  async find(key: UploadKey) {
    const found = await findUpload(this.#api.database.db, key);
    const { tus } = found.upload;
    if (tus === null)
      throw notFound('this upload is not by tus.', 'Send its parts to …/files/(fid)/parts/(part).');
    return { ...found, tus };
  }

  /** The offset after the body of the request that began the upload. If it fails, nobody is told where the upload is. */
  async takeFirstBytes(key: UploadKey, exchange: Exchange, length: number): Promise<number> {
    try {
      const { project, upload } = await this.find(key);
      const charge = { project, user: upload.owner, added: length };
      await assertStorage(this.#api.database.db, { ...charge, limits: this.#api.config });
      if (isOffsetStream(exchange.req) || length === 0) return await this.#append(key, exchange, 0);
      this.#setExpires(exchange.res, upload);
      return 0;
    } catch (error) {
      await endUpload(this.#api, key).catch(() => {});
      throw error;
    }
  }

  /** Appends the request's body, and begins the parse after the last byte; the offset after it. */
  append(key: UploadKey, exchange: Exchange, offset: number): Promise<number> {
    return this.#append(key, exchange, offset).catch(throwAsLocked);
  }

  /** The offset from which the sender goes on: what is being sent by an earlier request ends. */
  async resume(key: UploadKey, exchange: Exchange) {
    await this.find(key);
    await this.#appender.interrupt(key);
    const { upload, tus } = await this.find(key);
    const offset = offsetOf(upload, tus.length);
    // Its last byte came, but a process died before it began to parse.
    if (upload.job === null && offset === tus.length && upload.parts > 0)
      await this.#finish(key, exchange).catch(throwAsLocked);
    else if (upload.job === null) this.#setExpires(exchange.res, upload);
    return { offset, tus };
  }

  async abandon(key: UploadKey): Promise<void> {
    await this.#appender.interrupt(key);
    await endUpload(this.#api, key);
  }

  async #append(key: UploadKey, { req, res }: Exchange, offset: number): Promise<number> {
    const { database, config } = this.#api;
    const checksum = readChecksum(req);
    const found = await this.find(key);
    const { upload, project, tus } = found;
    assertUploadOpen(found);
    const { length } = tus;
    await this.#appender.interrupt(key);
    const now = offsetOf((await this.find(key)).upload, length);
    if (offset !== now) throw otherOffset(now);
    const announced = Number(req.get('Content-Length') ?? 0);
    if (announced > length - offset) throw tooLong(length - offset);
    const charge = { project, user: upload.owner, added: announced };
    await assertStorage(database.db, { ...charge, limits: config });
    disableBodyTimeouts(res);
    const identify = () => identifyLateSender(this.#api, { req, res });
    const end = await this.#appender.append(req, { key, offset, length, checksum, identify });
    if (end === length) await this.#finish(key, { req, res });
    // The bytes that came have put its end off.
    else this.#setExpires(res, (await this.find(key)).upload);
    return end;
  }

  /** Begins the parse, unless another request has begun it. */
  async #finish(key: UploadKey, exchange: Exchange): Promise<void> {
    try {
      // Without the key of the request: the upload is parsed once, and clients send one key with many uploads.
      await startJobUnder(this.#api, { ...exchange, key: undefined }, async tx => {
        const { upload } = await findUpload(tx, key);
        return acceptUpload(tx, key, [upload.parts]);
      });
    } catch (error) {
      const isConflict = error instanceof WindlassError && error.code === 'conflict';
      if (!isConflict || (await this.find(key)).upload.job === null) throw error;
    }
  }

  /** "The server MUST send the Upload-Expires header in every PATCH response if the upload is going to expire." */
  #setExpires(res: Response, upload: UploadRow): void {
    const idle = this.#api.config.UPLOAD_IDLE_TIMEOUT;
    const since = Math.max(upload.accessed.getTime(), Date.now() - 60_000);
    if (idle > 0) res.set('Upload-Expires', new Date(since + idle * 1_000).toUTCString());
  }
}

/** The parts are removed once they are parsed. */
const offsetOf = (upload: UploadRow, length: number) =>
  upload.job === null ? upload.bytes : length;

/** After 429 clients give up, or begin again from the first byte; after 423 they repeat the request. */
function throwAsLocked(error: unknown): never {
  if (!(error instanceof WindlassError) || error.code !== 'too_many_requests') throw error;
  throw new WindlassError('locked', {
    detail: 'all bytes are stored, but you have too many open jobs for another parse.',
    hint: 'HEAD begins the parse as soon as some of them have ended. LIMIT_OPEN_JOBS sets the limit.',
    headers: { 'Retry-After': '10' },
  });
}

const tooLong = (left: number) =>
  new WindlassError('payload_too_large', {
    detail: `Upload-Length leaves ${left} bytes.`,
    hint: 'Send as many bytes as Upload-Length says.',
  });
