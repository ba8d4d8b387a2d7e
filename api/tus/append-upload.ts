import type { IncomingMessage } from 'node:http';
import { finished } from 'node:stream/promises';
import { WindlassError } from '../../shared/errors/errors.ts';
import { newObjectKey } from '../../shared/jobs/object-keys.ts';
import { removeIfRolledBack } from '../../shared/storage/remove-if-rolled-back.ts';
import { keepUploadAlive } from '../../shared/uploads/keep-upload-alive.ts';
import type { PartMeter } from '../../shared/uploads/part-meter.ts';
import { commitPart, lockUpload } from '../../shared/uploads/uploads.ts';
import type { ApiContext } from '../context.ts';
import { ReservedPartMeter } from '../uploads/disk-reservations.ts';
import type { UploadKey } from '../uploads/find-upload.ts';
import { pipeBody } from '../uploads/pipe-body.ts';
import { storeMetered } from '../uploads/store-part.ts';
import { AppendSink } from './append-sink.ts';
import type { Checksum } from './protocol.ts';

/** Bytes that become one part: what is lost when this process dies. */
const PART_BYTES = 64 << 20;

interface Append {
  key: UploadKey;
  /** Where the bytes begin. */
  offset: number;
  /** Upload-Length. */
  length: number;
  checksum?: Checksum;
  /** Throws where the user may not send bytes any more. */
  identify(): Promise<void>;
}

/** Appends the bodies of requests to uploads through tus: each part follows the one before it. */
export class UploadAppender {
  readonly #api: ApiContext;
  /** The body that this process appends, by upload. */
  readonly #running = new Map<string, { sink: AppendSink; ended: Promise<unknown> }>();

  constructor(api: ApiContext) {
    this.#api = api;
  }

  /**
   * Ends the body that this process still appends, and waits until what came of it is stored: a client that asks again
   * has lost that connection, and the offset that it gets must hold.
   */
  async interrupt({ uid }: UploadKey): Promise<void> {
    const running = this.#running.get(uid);
    running?.sink.destroy(goesOnElsewhere());
    await running?.ended;
  }

  /** The offset after the request's body. What came of a body that ended early is kept before this throws. */
  async append(
    req: IncomingMessage,
    { key, offset, length, checksum, identify }: Append,
  ): Promise<number> {
    const { config, bodyStore } = this.#api;
    const announced = req.headers['content-length'];
    let end = offset;
    const stopKeeping = await keepUploadAlive(this.#api, key, config.UPLOAD_IDLE_TIMEOUT);
    const size = announced ? Number(announced) : undefined;
    const stored = bodyStore.store(key.owner, size, async reservation => {
      const sink = new AppendSink({
        room: length - offset,
        partBytes: Math.min(PART_BYTES, config.LIMIT_PART_BYTES),
        checksum,
        createMeter: () => new ReservedPartMeter({ limit: config.LIMIT_PART_BYTES, reservation }),
        store: async meter => {
          end = await this.#storePart(meter, { key, offset: end, identify });
        },
      });
      const ended = finished(sink).catch(() => {});
      this.#running.set(key.uid, { sink, ended });
      const stop = pipeBody(req, sink, config.LIMIT_BODY_SECONDS * 1_000);
      try {
        await finished(sink);
        return end;
      } finally {
        stop();
        if (this.#running.get(key.uid)?.sink === sink) this.#running.delete(key.uid);
      }
    });
    return stored.finally(stopKeeping);
  }

  /** Stores bytes as the next part, which must begin at this offset; the offset after it. */
  async #storePart(
    meter: PartMeter,
    { key: { uid }, offset, identify }: Pick<Append, 'key' | 'offset' | 'identify'>,
  ): Promise<number> {
    const { objects, database, config } = this.#api;
    const stored = await storeMetered(objects, newObjectKey('uploads', uid), { meter });
    try {
      await identify();
      await database.db.transaction(async tx => {
        const { upload } = await lockUpload(tx, uid);
        if (upload.bytes !== offset) throw otherOffset(upload.bytes);
        const place = { upload: uid, file: 0, part: upload.parts };
        await commitPart(tx, { ...place, ...stored }, config);
      });
    } catch (error) {
      await removeIfRolledBack(objects, [stored.object], error);
      throw error;
    }
    return offset + stored.size;
  }
}

/** Clients ask for the offset and go on after 409 and 423; after other errors of this kind they give up. */
const goesOnElsewhere = () =>
  new WindlassError('locked', {
    detail: 'another request goes on with this upload.',
    hint: 'HEAD tells the offset from which to go on.',
  });

/** "If the offsets do not match, the Server MUST respond with the 409 Conflict status without modifying the upload resource." */
export const otherOffset = (offset: number) =>
  new WindlassError('conflict', {
    detail: `the upload has ${offset} bytes.`,
    hint: 'HEAD tells the offset from which to go on.',
  });
