import { createHash, randomBytes } from 'node:crypto';
import type { Client } from '../../../servers/api-client.ts';

export interface UploadRecord {
  id: string;
  mid: string;
  state: 'open' | 'parsing' | 'done' | 'failed';
  parts: { fid: number; pid: number; size: number; digest: string }[];
  job?: string;
  error?: { message: string; errors: unknown[] };
}

/** A new project with a model in it. */
export async function makeModel(client: Client): Promise<{ pid: string; mid: string }> {
  const { id: pid } = await client.post<{ id: string }>('/api/projects', { name: 'uploads' });
  const { id: mid } = await client.post<{ id: string }>(`/api/projects/${pid}/models`, {
    'model-type': 'test',
    name: 'uploads',
  });
  return { pid, mid };
}

/** An upload of files as they are. */
export async function beginUpload(client: Client, mid: string, aids: string[]): Promise<string> {
  const body = { mid, input: true, parser: 'blob', aids };
  return (await client.post<{ id: string }>('/api/uploads', body)).id;
}

export const partPath = (uid: string, fid: number | string, pid: number | string) =>
  `/api/uploads/${uid}/files/${fid}/parts/${pid}`;

/** PUT of bytes as they are. */
export function putPart(
  client: Client,
  path: string,
  bytes: Uint8Array,
  headers: Record<string, string> = {},
): Promise<Response> {
  return client.fetch(path, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/octet-stream', ...headers },
    body: bytes as Uint8Array<ArrayBuffer>,
  });
}

export const readUpload = (client: Client, uid: string) =>
  client.get<UploadRecord>(`/api/uploads/${uid}`);

export const finishUpload = (client: Client, uid: string, uploaded: number[]) =>
  client.fetch(`/api/uploads/${uid}/finished`, {
    method: 'POST',
    body: JSON.stringify({ uploaded }),
  });

export const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('base64');
export const digestField = (bytes: Uint8Array) => `sha-256=:${sha256(bytes)}:`;
export const someBytes = (count: number) => new Uint8Array(randomBytes(count));
