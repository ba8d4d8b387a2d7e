import type { Connection } from './connection.ts';
import { escapeId, escapePath } from './escape-path.ts';
import { requireJson } from './foreign-answer.ts';
import type { components } from './schema.ts';
import { timeToSend } from './time-to-send.ts';

export type WrittenFile = components['schemas']['WrittenFile'];

/** Once it is sent, a large file is written to its host before the answer comes. */
const ANSWER_MS = 3_600_000;

/** A file that is to be on the host. */
export interface FileToPut {
  sid: string;
  path: string;
  body: Blob | ReadableStream;
  /** Bytes of the body. */
  size: number;
  mode?: number;
  parents?: boolean;
  exclusive?: boolean;
}

export const filePath = (sid: string, path: string) =>
  `/api/remotes/${escapeId(sid)}/file${escapePath(path)}`;

/** Writes a file on the host by one request, sent once. */
export async function putFile(
  { http }: Connection,
  { sid, path, body, size, mode, parents, exclusive }: FileToPut,
  signal?: AbortSignal,
): Promise<WrittenFile> {
  const query = new URLSearchParams();
  if (mode !== undefined) query.set('mode', mode.toString(8).padStart(4, '0'));
  if (parents) query.set('parents', 'true');
  const headers: Record<string, string> = { 'Content-Type': 'application/octet-stream' };
  if (exclusive) headers['If-None-Match'] = '*';
  const response = await http.request(
    `${filePath(sid, path)}${query.size > 0 ? `?${query}` : ''}`,
    // Without `duplex` no stream is sent (Fetch, 5.5); in a page a File is sent as it is.
    { method: 'PUT', headers, body, duplex: 'half' } as RequestInit,
    { signal, isRepeatable: false, timeoutMs: ANSWER_MS + timeToSend(size) },
  );
  return (await (await requireJson(response)).json()) as WrittenFile;
}
