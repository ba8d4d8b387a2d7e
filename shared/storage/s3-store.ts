import type { IncomingMessage } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { assertSize, exactly } from './exact-size.ts';
import { assertKey, type ByteRange, type ObjectStore, type StoredObject } from './object-store.ts';
import { S3Body } from './s3-body.ts';
import { type CallOptions, S3Call, S3Connections, type S3Options } from './s3-call.ts';
import { explainCheck, explainS3, isCut, isMissing, s3Code } from './s3-errors.ts';
import { putParts } from './s3-multipart.ts';

/** Requests answer within seconds that the store is away: so long it may be silent where little is asked of it. */
const SILENCE_MS = 5_000;
const CHECK_SILENCE_MS = 3_000;
/** Taking in bytes, putting parts together and listing may keep a server's disks busy. */
const BULK_SILENCE_MS = 20_000;
const SLOW_SILENCE_MS = 60_000;
/** S3's own limit for one PUT. */
const MAX_PUT = 5 * 2 ** 30;
const PAGE = 1_000;

interface PutOptions {
  size?: number;
  signal?: AbortSignal;
}

/**
 * Objects in a bucket of MinIO or another S3 server, over the `minio` package. Memory does not grow with an object's size.
 * A call whose answer was lost may have taken effect although it failed: keys are new for each attempt, and upkeep removes
 * what nothing refers to.
 */
export class S3Store implements ObjectStore {
  readonly #connections: S3Connections;
  readonly #bucket: string;
  #making: Promise<void> | undefined;

  constructor(options: S3Options) {
    this.#connections = new S3Connections(options);
    this.#bucket = options.bucket;
  }

  async put(
    key: string,
    bytes: Readable | Buffer | Buffer[],
    options: PutOptions = {},
  ): Promise<number> {
    assertKey(key);
    const { size, signal } = options;
    if (Buffer.isBuffer(bytes)) {
      assertSize([bytes], size);
      return this.#putBuffer(key, bytes, signal);
    }
    if (Array.isArray(bytes)) {
      const given = bytes.reduce((sum, buffer) => sum + buffer.length, 0);
      return this.put(key, Readable.from(bytes, { objectMode: false }), {
        size: given,
        ...options,
      });
    }
    // A source that hangs while its next bytes are waited for ends only when it is destroyed.
    const stop = () => bytes.destroy(signal?.reason as Error);
    const ignore = () => {};
    bytes.on('error', ignore);
    signal?.addEventListener('abort', stop, { once: true });
    try {
      signal?.throwIfAborted();
      await this.#makeBucket();
      if (size === undefined) return await this.#putParts(bytes, bytes, { key, signal });
      const exact = exactly(size, bytes);
      return size > MAX_PUT
        ? await this.#putParts(bytes, exact, { key, size, signal })
        : await this.#putStream(key, exact, { size, signal });
    } catch (error) {
      bytes.destroy();
      throw error;
    } finally {
      signal?.removeEventListener('abort', stop);
      if (bytes.closed) bytes.off('error', ignore);
    }
  }

  async get(
    key: string,
    options: { range?: ByteRange; signal?: AbortSignal } = {},
  ): Promise<Readable> {
    assertKey(key);
    const { range, signal } = options;
    const { bulk } = this.#connections;
    const body = new S3Body();
    await this.#ask({ agent: bulk, silenceMs: SILENCE_MS, signal }, async call => {
      const { client } = call;
      const response = range
        ? await client.getPartialObject(this.#bucket, key, range.start, range.end - range.start + 1)
        : await client.getObject(this.#bucket, key);
      call.isReaderSlow = () => body.writableNeedDrain || body.writableEnded;
      // Whoever destroys the one destroys the other, and so the connection.
      pipeline(response, body, () => {});
    });
    return body;
  }

  async stat(key: string): Promise<StoredObject | undefined> {
    assertKey(key);
    try {
      const found = await this.#control(({ client }) => client.statObject(this.#bucket, key));
      return { key, size: found.size, modified: found.lastModified };
    } catch (error) {
      if (isMissing((error as Error).cause ?? error)) return undefined;
      throw error;
    }
  }

  async remove(key: string): Promise<void> {
    assertKey(key);
    await this.#control(({ client }) => client.removeObject(this.#bucket, key)).catch(
      (error: unknown) => {
        if (!isMissing((error as Error).cause)) throw error;
      },
    );
  }

  async *list(prefix: string): AsyncIterable<StoredObject> {
    await this.#makeBucket();
    let token = '';
    do {
      const page = await this.#slow(({ client }) =>
        client.listObjectsV2Query(this.#bucket, prefix, token, '', PAGE, ''),
      );
      for (const { name, size, lastModified } of page.objects) {
        if (name !== undefined) yield { key: name, size, modified: lastModified };
      }
      token = page.isTruncated ? page.nextContinuationToken : '';
    } while (token);
  }

  /** Ends multipart uploads that were begun before then. MinIO ends them itself after a day; other servers never do. */
  async removeAbandoned(before: Date): Promise<void> {
    await this.#makeBucket();
    for (let key = '', id = ''; ; ) {
      const page = await this.#slow(({ client }) =>
        client.listIncompleteUploadsQuery(this.#bucket, '', key, id, ''),
      );
      for (const upload of page.uploads)
        if (upload.initiated < before) await this.#abort(upload.key, upload.uploadId);
      if (!page.isTruncated) return;
      ({ nextKeyMarker: key, nextUploadIdMarker: id } = page);
    }
  }

  async freeBytes(): Promise<undefined> {
    return undefined;
  }

  /** Says in one line what is wrong. Makes the bucket where it is missing. */
  async check(): Promise<void> {
    const call = this.#call({ agent: this.#connections.control, silenceMs: CHECK_SILENCE_MS });
    try {
      await call.client.listObjectsV2Query(this.#bucket, 'none/', '', '/', 1, '');
    } catch (error) {
      if (s3Code(error) !== 'NoSuchBucket') throw explainCheck(error, call.status);
      this.#making = undefined;
      await this.#makeBucket();
    }
  }

  async #putBuffer(key: string, bytes: Buffer, signal?: AbortSignal): Promise<number> {
    await this.#makeBucket();
    await this.#ask({ agent: this.#connections.bulk, silenceMs: BULK_SILENCE_MS, signal }, call =>
      this.#send(call, { key, body: bytes, size: bytes.length }),
    );
    return bytes.length;
  }

  async #putStream(
    key: string,
    bytes: AsyncIterable<Buffer>,
    { size, signal }: { size: number; signal?: AbortSignal },
  ): Promise<number> {
    const { fresh } = this.#connections;
    const call = this.#call({ agent: fresh, silenceMs: BULK_SILENCE_MS, signal });
    const body = Readable.from(bytes, { objectMode: false, highWaterMark: 1 << 18 });
    // The source's own error, where there was one, says more than the connection's that it cut.
    let failure: unknown;
    body.once('error', error => {
      failure = error;
    });
    try {
      await this.#send(call, { key, body, size });
      return size;
    } catch (error) {
      body.destroy();
      throw this.#explain(failure ?? error, call);
    }
  }

  #putParts(
    source: Readable,
    bytes: AsyncIterable<Buffer>,
    { key, size, signal }: PutOptions & { key: string },
  ): Promise<number> {
    const options = { agent: this.#connections.bulk, silenceMs: BULK_SILENCE_MS, signal };
    return putParts(source, {
      bytes,
      size,
      putWhole: whole => this.#putBuffer(key, whole, signal),
      begin: () =>
        this.#ask(options, ({ client }) =>
          client.initiateNewMultipartUpload(this.#bucket, key, {}),
        ),
      send: (upload, { number, bytes: body }) => {
        const query = `partNumber=${number}&uploadId=${encodeURIComponent(upload)}`;
        const request = { key, body, size: body.length, query };
        return this.#ask(options, call => this.#send(call, request));
      },
      complete: (upload, sent) =>
        this.#slow(({ client }) => client.completeMultipartUpload(this.#bucket, key, upload, sent)),
      abort: upload => this.#abort(key, upload),
    });
  }

  async #abort(key: string, upload: string): Promise<void> {
    await this.#control(({ client }) =>
      client.abortMultipartUpload(this.#bucket, key, encodeURIComponent(upload)),
    ).catch((error: unknown) => {
      if (s3Code((error as Error).cause ?? error) !== 'NoSuchUpload') throw error;
    });
  }

  /** PUT of an object or of one of its parts; its ETag. */
  async #send(
    { client }: S3Call,
    request: { key: string; body: Readable | Buffer; size: number; query?: string },
  ): Promise<string> {
    const { key, body, size, query } = request;
    const headers = { 'content-length': size, 'content-type': 'application/octet-stream' };
    const response: IncomingMessage = await client.makeRequestStreamAsync(
      { method: 'PUT', bucketName: this.#bucket, objectName: key, query, headers },
      body,
      '',
      [200],
      '',
    );
    await finished(response.resume());
    return (response.headers.etag ?? '').replace(/^"|"$/g, '');
  }

  /** Makes the bucket once where it is missing; safe to race. */
  #makeBucket(): Promise<void> {
    this.#making ??= this.#makeMissingBucket().catch((error: unknown) => {
      this.#making = undefined;
      throw error;
    });
    return this.#making;
  }

  async #makeMissingBucket(): Promise<void> {
    const { region } = this.#connections.options;
    if (await this.#control(({ client }) => client.bucketExists(this.#bucket))) return;
    await this.#control(({ client }) => client.makeBucket(this.#bucket, region)).catch(
      async (error: unknown) => {
        // Somebody else made it.
        if (!(await this.#control(({ client }) => client.bucketExists(this.#bucket)))) throw error;
      },
    );
  }

  #control<T>(use: (call: S3Call) => Promise<T>): Promise<T> {
    return this.#ask({ agent: this.#connections.control, silenceMs: SILENCE_MS }, use);
  }

  #slow<T>(use: (call: S3Call) => Promise<T>): Promise<T> {
    return this.#ask({ agent: this.#connections.control, silenceMs: SLOW_SILENCE_MS }, use);
  }

  /** A call that may be repeated: once more, where a kept connection turned out to be closed. */
  async #ask<T>(options: CallOptions, use: (call: S3Call) => Promise<T>): Promise<T> {
    let call = this.#call(options);
    try {
      return await use(call);
    } catch (error) {
      if (!call.reusedSocket || !isCut(error)) throw this.#explain(error, call);
    }
    call = this.#call(options);
    try {
      return await use(call);
    } catch (error) {
      throw this.#explain(error, call);
    }
  }

  #call(options: CallOptions): S3Call {
    return new S3Call(this.#connections, options);
  }

  #explain(error: unknown, call: S3Call): unknown {
    // Made again at the next put.
    if (s3Code(error) === 'NoSuchBucket') this.#making = undefined;
    return explainS3(error, call.status);
  }
}
