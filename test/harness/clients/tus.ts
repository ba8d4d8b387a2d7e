import type { Client } from '../../../servers/api-client.ts';

const VERSION = { 'Tus-Resumable': '1.0.0' };
const OFFSET_STREAM = 'application/offset+octet-stream';

/** Upload-Metadata (tus 1.0, creation). */
export const tusMetadata = (values: Record<string, string>) =>
  Object.entries(values)
    .map(([key, value]) => `${key} ${Buffer.from(value).toString('base64')}`)
    .join(',');

/** Requests of tus 1.0 about one upload. */
export class TusClient {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  create(
    length: number,
    metadata: Record<string, string>,
    { bytes, headers = {} }: { bytes?: Uint8Array; headers?: Record<string, string> } = {},
  ): Promise<Response> {
    return this.#client.fetch('/api/tus', {
      method: 'POST',
      headers: {
        ...VERSION,
        'Upload-Length': String(length),
        'Upload-Metadata': tusMetadata(metadata),
        ...(bytes && { 'Content-Type': OFFSET_STREAM }),
        ...headers,
      },
      body: bytes as Uint8Array<ArrayBuffer> | undefined,
    });
  }

  head(path: string): Promise<Response> {
    return this.#client.fetch(path, { method: 'HEAD', headers: VERSION });
  }

  /** Bytes that are stored. */
  async offset(path: string): Promise<number> {
    const answer = await this.head(path);
    if (!answer.ok) throw new Error(`HEAD was answered ${answer.status}`);
    return Number(answer.headers.get('Upload-Offset'));
  }

  patch(
    path: string,
    offset: number,
    bytes: Uint8Array,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    return this.#client.fetch(path, {
      method: 'PATCH',
      headers: {
        ...VERSION,
        'Upload-Offset': String(offset),
        'Content-Type': OFFSET_STREAM,
        ...headers,
      },
      body: bytes as Uint8Array<ArrayBuffer>,
    });
  }

  terminate(path: string): Promise<Response> {
    return this.#client.fetch(path, { method: 'DELETE', headers: VERSION });
  }
}
