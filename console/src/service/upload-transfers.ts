import { type components, type ParserParameters, unwrap, WindlassError } from '@windlass/client';
import { windlass } from './client.ts';
import { modelChanged } from './models.ts';
import { sendFromPage } from './page-transfers.ts';
import { forgetUpload, rememberUpload } from './remembered-uploads.ts';

export type Upload = components['schemas']['Upload'];

/** Files that are sent into a model as one upload. */
export interface UploadTransfer {
  key: number;
  mid: string;
  parser: string;
  /** The artifacts, one for each file. */
  aids: string[];
  files: File[];
  parameters: Record<string, unknown>;
  /** The upload's id, once it is begun. */
  uid: string | undefined;
  state: 'waits' | 'sends' | 'paused' | 'parses' | 'done' | 'failed';
  sent: number;
  total: number;
  /** Why it failed. */
  error?: unknown;
  /** The upload, where its files could not be read. */
  upload?: Upload;
}

type NewUploadTransfer = Pick<UploadTransfer, 'mid' | 'parser' | 'aids' | 'files' | 'parameters'>;

/** The uploads of this page. Several parts of the one that is sent go at once. */
export const uploadTransfers = sendFromPage<UploadTransfer>(send);

export function addUpload(given: NewUploadTransfer, uid?: string): void {
  const total = given.files.reduce((sum, { size }) => sum + size, 0);
  uploadTransfers.add([given], key => ({ ...given, key, uid, state: 'waits', sent: 0, total }));
}

export const pauseUpload = (key: number): void => uploadTransfers.stop(key, { state: 'paused' });

/** Goes on after a pause or a failure: what the service has is not sent again. */
export const resumeUpload = (key: number): void =>
  uploadTransfers.change([key], { state: 'waits', error: undefined, upload: undefined });

/** Whether it was to go on with other files than those that it was begun with: it waits for the right ones. */
const isOfOtherFiles = ({ error }: UploadTransfer): boolean =>
  error instanceof WindlassError && error.code === 'other_files';

/** Whether nothing of it is lost with its place in the list: what ended stays in the model's list of uploads. */
export const isKeptElsewhere = (transfer: UploadTransfer): boolean =>
  transfer.state === 'done' || transfer.upload !== undefined || isOfOtherFiles(transfer);

/** Removes a transfer from the list. If its upload has begun and is kept nowhere else, that is given up. */
export function removeUpload(transfer: UploadTransfer): void {
  const { key, uid, state } = transfer;
  uploadTransfers.remove([key]);
  if (uid && state !== 'parses' && !isKeptElsewhere(transfer))
    void abandonUpload(uid).catch(() => {});
}

async function send(
  { key, mid, parser, aids, files, parameters, uid, total }: UploadTransfer,
  signal: AbortSignal,
): Promise<Partial<UploadTransfer>> {
  let begun = uid;
  const onBegin = (id: string) => {
    begun = id;
    rememberUpload(id, files, aids);
    uploadTransfers.change([key], { uid: id });
  };
  const onProgress = (progress: { sent: number; total: number }) => {
    if (!signal.aborted) uploadTransfers.change([key], progress);
  };
  // Until then the page is needed: who closes it leaves an upload that nobody finishes.
  const onSent = () => {
    if (signal.aborted) return;
    uploadTransfers.change([key], { state: 'parses', sent: total });
    void modelChanged(mid);
  };
  const how = { onProgress, onSent, signal };
  // Their fields are made of what the service says of each parser.
  const described = parameters as ParserParameters;
  uploadTransfers.change([key], { sent: 0 });
  try {
    await (uid === undefined
      ? windlass.upload(files, { ...described, ...how, mid, parser, aids, input: true, onBegin })
      : windlass.upload(files, { ...how, resume: uid }));
    if (begun && !signal.aborted) forgetUpload(begun);
    return { state: 'done', files: [] };
  } catch (error) {
    const isOfParse = error instanceof WindlassError && error.job !== undefined;
    // What the job says of it is short; the upload has the rows.
    const upload = isOfParse && begun ? await getUpload(begun).catch(() => undefined) : undefined;
    return { state: 'failed', error, upload };
  } finally {
    void modelChanged(mid);
  }
}

export const getUpload = (uid: string): Promise<Upload> =>
  unwrap(windlass.api.GET('/api/uploads/{uid}', { params: { path: { uid } } }));

/** Gives an upload up: its parts are removed. */
export async function abandonUpload(uid: string): Promise<void> {
  await unwrap(windlass.api.DELETE('/api/uploads/{uid}', { params: { path: { uid } } }));
  forgetUpload(uid);
}
