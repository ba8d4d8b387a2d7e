import type { IncomingMessage } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { LRUCache } from 'lru-cache';
import { assertBuffersSize, enforceSize } from './declared-size.ts';
import {
  type AddressOptions,
  assertKey,
  type GetOptions,
  type ObjectSource,
  type ObjectStore,
  type PutOptions,
  type StoredObject,
} from './object-store.ts';
import { S3Body } from './s3-body.ts';
import {
  bucketGone,
  isConnectionReset,
  isMissing,
  s3Code,
  translateCheckError,
  translateS3Error,
} from './s3-errors.ts';
import { putMultipart } from './s3-multipart.ts';
import {
  presignGet,
  S3Connections,
  type S3Options,
  S3Request,
  type S3RequestOptions,
} from './s3-request.ts';

/** Stall time-outs of requests: a client that finds the store unreachable gets its answer within seconds. */
const STALL_MS = 5_000;
const CHECK_STALL_MS = 3_000;
/** Writing bytes, completing an upload and listing may keep a server's disks busy. */
const BULK_STALL_MS = 20_000;
const SLOW_STALL_MS = 60_000;
/** S3's own limit for one PUT. */
const MAX_PUT = 5 * 2 ** 30;
const PAGE = 1_000;
/**
 * A player requests one range of a video after the other: an object never changes, so it is not looked up each time.
 */
const KNOWN_MS = 2_000;
const MAX_KNOWN = 1_000;

/**
 * Objects in a bucket of MinIO or another S3 server. Memory does not grow with an object's size. A failed request may
 * have taken effect: each attempt uses new keys, and upkeep removes objects that no row refers to.
 */
export class S3Store implements ObjectStore {
  readonly #connections: S3Connections;
  readonly #bucket: string;
  readonly #known = new LRUCache<string, StoredObject>({ max: MAX_KNOWN, ttl: KNOWN_MS });
  #bucketReady: Promise<void> | undefined;

  constructor(options: S3Options) {
    this.#connections = new S3Connections(options);
    this.#bucket = options.bucket;
  }

  async put(key: string, bytes: ObjectSource, options: PutOptions = {}): Promise<number> {
    assertKey(key);
    const { size, signal } = options;
    if (Buffer.isBuffer(bytes)) {
      assertBuffersSize([bytes], size);
      return this.#putBuffer(key, bytes, signal);
    }
    if (Array.isArray(bytes)) {
      const given = bytes.reduce((sum, buffer) => sum + buffer.length, 0);
      return this.put(key, Readable.from(bytes, { objectMode: false }), {
        size: given,
        ...options,
      });
    }
    // A source that hangs ends only when it is destroyed.
    const stop = () => bytes.destroy(signal?.reason as Error);
    const ignore = () => {};
    bytes.on('error', ignore);
    signal?.addEventListener('abort', stop, { once: true });
    try {
      signal?.throwIfAborted();
      await this.#ensureBucket();
      if (size === undefined) return await this.#putMultipart(bytes, bytes, { key, signal });
      const exact = enforceSize(size, bytes);
      return size > MAX_PUT
        ? await this.#putMultipart(bytes, exact, { key, size, signal })
        : await this.#putStream(key, exact, { size, signal });
    } catch (error) {
      bytes.destroy();
      throw error;
    } finally {
      signal?.removeEventListener('abort', stop);
      if (bytes.closed) bytes.off('error', ignore);
    }
  }

  async get(key: string, { range, signal }: GetOptions = {}): Promise<Readable> {
    assertKey(key);
    const { bulk } = this.#connections;
    const body = new S3Body();
    await this.#request({ agent: bulk, stallMs: STALL_MS, signal }, async request => {
      const { client } = request;
      const response = range
        ? await client.getPartialObject(this.#bucket, key, range.start, range.end - range.start + 1)
        : await client.getObject(this.#bucket, key);
      request.isReaderSlow = () => body.writableNeedDrain || body.writableEnded;
      // Destroying either stream destroys the other, and the connection.
      pipeline(response, body, () => {});
    });
    return body;
  }

  async stat(key: string): Promise<StoredObject | undefined> {
    assertKey(key);
    const known = this.#known.get(key);
    if (known) return known;
    try {
      const found = await this.#control(({ client }) => client.statObject(this.#bucket, key));
      const { size, lastModified: modified, etag } = found;
      const object = { key, size, modified, tag: `"${etag}"` };
      this.#known.set(key, object);
      return object;
    } catch (error) {
      if (!isMissing((error as Error).cause ?? error)) throw error;
      // The answer to HEAD has no body, and so does not say which of the two is missing.
      if (await this.#control(({ client }) => client.bucketExists(this.#bucket))) return undefined;
      this.#bucketReady = undefined;
      throw bucketGone(error);
    }
  }

  addressOf(key: string, { type, disposition, seconds }: AddressOptions): Promise<string> {
    assertKey(key);
    const headers = {
      'response-content-type': type,
      'response-content-disposition': disposition,
      'response-cache-control': 'private, no-cache',
    };
    return presignGet(this.#connections.options, { key, seconds, headers });
  }

  async remove(key: string): Promise<void> {
    assertKey(key);
    this.#known.delete(key);
    await this.#control(({ client }) => client.removeObject(this.#bucket, key)).catch(
      (error: unknown) => {
        if (!isMissing((error as Error).cause)) throw error;
      },
    );
  }

  async *list(prefix: string): AsyncIterable<StoredObject> {
    await this.#ensureBucket();
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

  /** Aborts multipart uploads that began before then. MinIO aborts them itself after a day; other servers never do. */
  async removeAbandonedWrites(before: Date): Promise<void> {
    await this.#ensureBucket();
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

  /** Throws an error that says in one line what is wrong. Creates the bucket where it is missing. */
  async check(): Promise<void> {
    const request = new S3Request(this.#connections, {
      agent: this.#connections.control,
      stallMs: CHECK_STALL_MS,
    });
    try {
      await request.client.listObjectsV2Query(this.#bucket, 'none/', '', '/', 1, '');
    } catch (error) {
      if (s3Code(error) !== 'NoSuchBucket') throw translateCheckError(error, request.status);
      this.#bucketReady = undefined;
      await this.#ensureBucket();
    }
  }

  async #putBuffer(key: string, bytes: Buffer, signal?: AbortSignal): Promise<number> {
    await this.#ensureBucket();
    await this.#request(
      { agent: this.#connections.bulk, stallMs: BULK_STALL_MS, signal },
      request => this.#send(request, { key, body: bytes, size: bytes.length }),
    );
    return bytes.length;
  }

  async #putStream(
    key: string,
    bytes: AsyncIterable<Buffer>,
    { size, signal }: { size: number; signal?: AbortSignal },
  ): Promise<number> {
    const { fresh } = this.#connections;
    const request = new S3Request(this.#connections, {
      agent: fresh,
      stallMs: BULK_STALL_MS,
      signal,
    });
    const body = Readable.from(bytes, { objectMode: false, highWaterMark: 1 << 18 });
    // An error of the source says more than the connection's error that it causes.
    let failure: unknown;
    body.once('error', error => {
      failure = error;
    });
    try {
      await this.#send(request, { key, body, size });
      return size;
    } catch (error) {
      body.destroy();
      throw this.#translate(failure ?? error, request);
    }
  }

  #putMultipart(
    source: Readable,
    bytes: AsyncIterable<Buffer>,
    { key, size, signal }: PutOptions & { key: string },
  ): Promise<number> {
    const options = { agent: this.#connections.bulk, stallMs: BULK_STALL_MS, signal };
    return putMultipart(source, {
      bytes,
      size,
      putWhole: whole => this.#putBuffer(key, whole, signal),
      begin: () =>
        this.#request(options, ({ client }) =>
          client.initiateNewMultipartUpload(this.#bucket, key, {}),
        ),
      send: (upload, { number, bytes: body }) => {
        const query = `partNumber=${number}&uploadId=${encodeURIComponent(upload)}`;
        const put = { key, body, size: body.length, query };
        return this.#request(options, request => this.#send(request, put));
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

  /** Puts an object or one of its parts; returns the ETag. */
  async #send(
    { client }: S3Request,
    put: { key: string; body: Readable | Buffer; size: number; query?: string },
  ): Promise<string> {
    const { key, body, size, query } = put;
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

  /** Creates the bucket where it is missing, once; safe to race. */
  #ensureBucket(): Promise<void> {
    this.#bucketReady ??= this.#createMissingBucket().catch((error: unknown) => {
      this.#bucketReady = undefined;
      throw error;
    });
    return this.#bucketReady;
  }

  async #createMissingBucket(): Promise<void> {
    const { region } = this.#connections.options;
    if (await this.#control(({ client }) => client.bucketExists(this.#bucket))) return;
    await this.#control(({ client }) => client.makeBucket(this.#bucket, region)).catch(
      async (error: unknown) => {
        // Another process created it.
        if (!(await this.#control(({ client }) => client.bucketExists(this.#bucket)))) throw error;
      },
    );
  }

  #control<T>(use: (request: S3Request) => Promise<T>): Promise<T> {
    return this.#request({ agent: this.#connections.control, stallMs: STALL_MS }, use);
  }

  #slow<T>(use: (request: S3Request) => Promise<T>): Promise<T> {
    return this.#request({ agent: this.#connections.control, stallMs: SLOW_STALL_MS }, use);
  }

  /** Makes a repeatable request, and repeats it once where the server had closed a kept connection. */
  async #request<T>(
    options: S3RequestOptions,
    use: (request: S3Request) => Promise<T>,
  ): Promise<T> {
    for (let tries = 1; ; tries++) {
      const request = new S3Request(this.#connections, options);
      try {
        return await use(request);
      } catch (error) {
        const mayRepeat = tries === 1 && request.reusedSocket && isConnectionReset(error);
        if (!mayRepeat) throw this.#translate(error, request);
      }
    }
  }

  #translate(error: unknown, request: S3Request): unknown {
    // The next put creates it again.
    if (s3Code(error) === 'NoSuchBucket') this.#bucketReady = undefined;
    return translateS3Error(error, request.status);
  }
}
