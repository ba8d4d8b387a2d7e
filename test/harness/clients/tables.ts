import type { Client } from '../../../servers/api-client.ts';
import { formatNpyHeader } from '../../../shared/arrays/npy-header.ts';
import type { ParserName } from '../../../shared/uploads/parsers.ts';
import { type Job, waitForEnd } from '../hosts/remote.ts';
import { finishUpload, partPath, putPart } from './uploads.ts';

export interface Metadata {
  rows: number;
  columns: { name: string; type: string; min: unknown; max: unknown; nulls: number }[];
}

export interface RowsPage {
  offset: number;
  total: number;
  columns: string[];
  rows: unknown[][];
}

interface Upload {
  mid: string;
  parser: ParserName;
  /** The artifacts, each with the parts of its file. */
  files: Record<string, Uint8Array[]>;
  /** The parameters of the parser and of the upload. */
  with?: Record<string, unknown>;
}

export const utf8 = (text: string) => new TextEncoder().encode(text);

/** Uploads files and finishes; the upload and the parse's job, which may be under way. */
export async function startParse(
  client: Client,
  { mid, parser, files, with: more = {} }: Upload,
): Promise<{ uid: string; job: string }> {
  const { id: uid } = await client.post<{ id: string }>('/api/uploads', {
    mid,
    input: false,
    parser,
    aids: Object.keys(files),
    ...more,
  });
  for (const [fid, parts] of Object.values(files).entries())
    for (const [pid, bytes] of parts.entries()) {
      const response = await putPart(client, partPath(uid, fid, pid), bytes);
      if (!response.ok) throw new Error(await response.text());
    }
  const finished = await finishUpload(
    client,
    uid,
    Object.values(files).map(parts => parts.length),
  );
  if (finished.status !== 202) throw new Error(await finished.text());
  return { uid, job: ((await finished.json()) as { job: string }).job };
}

/** The job of the parse once it has ended. */
export async function parse(client: Client, upload: Upload): Promise<Job & { uid: string }> {
  const { uid, job } = await startParse(client, upload);
  return { ...(await waitForEnd(client, job, 80_000)), uid };
}

/** Makes an array, of 2 times 3 integers unless a NumPy file is given; its path. */
export async function makeArray(
  client: Client,
  { mid, aid, file = SIX }: { mid: string; aid: string; file?: Uint8Array },
): Promise<string> {
  const job = await parse(client, { mid, parser: 'npy', files: { [aid]: [file] } });
  if (job.state !== 'succeeded') throw new Error(JSON.stringify(job.error));
  return `/api/models/${mid}/arrays/${encodeURIComponent(aid)}`;
}

/** The integers 0 to 5. */
const SIX = Buffer.concat([formatNpyHeader('|u1', [2, 3]), Buffer.from([0, 1, 2, 3, 4, 5])]);

/** Makes a table of this text; its path. */
export async function makeTable(
  client: Client,
  { mid, aid, csv, with: more }: { mid: string; aid: string; csv: string; with?: Upload['with'] },
): Promise<string> {
  const job = await parse(client, {
    mid,
    parser: 'csv',
    files: { [aid]: [utf8(csv)] },
    with: more,
  });
  if (job.state !== 'succeeded') throw new Error(JSON.stringify(job.error));
  return `/api/models/${mid}/tables/${encodeURIComponent(aid)}`;
}
