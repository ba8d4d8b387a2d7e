import { type components, type Job, unwrap, WindlassError } from '@windlass/client';
import { windlass } from './client.ts';
import { modelChanged } from './models.ts';
import { forgetUpload, rememberUpload } from './remembered-uploads.ts';
import { whenUserLeaves } from './user.ts';

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
  /** Of the upload, once it is begun. */
  uid: string | undefined;
  state: 'waits' | 'sends' | 'paused' | 'parses' | 'done' | 'failed';
  sent: number;
  total: number;
  /** Why it failed. */
  error?: unknown;
  /** What became of it, where its files could not be read. */
  upload?: Upload;
}

export type NewUploadTransfer = Pick<
  UploadTransfer,
  'mid' | 'parser' | 'aids' | 'files' | 'parameters'
>;

/**
 * The uploads of this page. One is sent at a time, in parts of which several go at once; it goes on while other pages of the
 * console are looked at.
 */
class UploadTransfers {
  #list: UploadTransfer[] = [];
  #next = 1;
  readonly #running = new Map<number, AbortController>();
  readonly #listeners = new Set<() => void>();

  get list(): readonly UploadTransfer[] {
    return this.#list;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  add(given: NewUploadTransfer, uid?: string): void {
    const total = given.files.reduce((sum, { size }) => sum + size, 0);
    this.#list.push({ ...given, key: this.#next++, uid, state: 'waits', sent: 0, total });
    this.#work();
  }

  pause(key: number): void {
    this.#change(key, { state: 'paused' });
    this.#running.get(key)?.abort();
  }

  /** Goes on after a pause or a failure: what the service has is not sent again. */
  resume(key: number): void {
    this.#change(key, { state: 'waits', error: undefined, upload: undefined });
    this.#work();
  }

  /** Takes it from the list. What of it is begun is given up. */
  remove(key: number): void {
    const transfer = this.#list.find(each => each.key === key);
    this.#running.get(key)?.abort();
    this.#list = this.#list.filter(each => each.key !== key);
    this.#tell();
    // What ended stays in the model's list of uploads.
    const isEnded = transfer?.state === 'done' || transfer?.upload !== undefined;
    if (transfer?.uid && transfer.state !== 'parses' && !isEnded)
      void abandonUpload(transfer.uid).catch(() => {});
    this.#work();
  }

  /** Stops all of them, and forgets them. */
  forget(): void {
    for (const running of this.#running.values()) running.abort();
    this.#list = [];
    this.#tell();
  }

  #change(key: number, changes: Partial<UploadTransfer>): void {
    this.#list = this.#list.map(each => (each.key === key ? { ...each, ...changes } : each));
    this.#tell();
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
    const isBusy = this.#list.some(({ state }) => state === 'waits' || state === 'sends');
    if (isBusy) addEventListener('beforeunload', askBefore);
    else removeEventListener('beforeunload', askBefore);
  }

  #work(): void {
    const isBusy = this.#list.some(({ state }) => state === 'sends');
    const next = isBusy ? undefined : this.#list.find(({ state }) => state === 'waits');
    if (next) void this.#send(next);
    else this.#tell();
  }

  async #send(transfer: UploadTransfer): Promise<void> {
    const { key, mid } = transfer;
    const stop = new AbortController();
    this.#running.set(key, stop);
    this.#change(key, { state: 'sends', sent: 0 });
    const onProgress = ({ sent, total }: { sent: number; total: number }) => {
      if (stop.signal.aborted) return;
      this.#change(key, { sent, total });
      if (sent < total) return;
      this.#change(key, { state: 'parses' });
      void modelChanged(mid);
      this.#work();
    };
    try {
      await this.#upload(transfer, { onProgress, signal: stop.signal });
      if (!stop.signal.aborted) this.#end(key);
    } catch (error) {
      if (!stop.signal.aborted) await this.#fail(key, error);
    } finally {
      if (this.#running.get(key) === stop) this.#running.delete(key);
      void modelChanged(mid);
      this.#work();
    }
  }

  #upload(
    { key, mid, parser, aids, files, parameters, uid }: UploadTransfer,
    how: { onProgress: (progress: { sent: number; total: number }) => void; signal: AbortSignal },
  ): Promise<Job> {
    if (uid !== undefined) return windlass.upload(files, { ...how, resume: uid });
    const onBegin = (begun: string) => {
      rememberUpload(begun, files, aids);
      this.#change(key, { uid: begun });
    };
    return windlass.upload(files, {
      ...parameters,
      ...how,
      mid,
      parser,
      aids,
      input: true,
      onBegin,
    });
  }

  #end(key: number): void {
    this.#change(key, { state: 'done', files: [] });
    const uid = this.#list.find(each => each.key === key)?.uid;
    if (uid) forgetUpload(uid);
  }

  async #fail(key: number, error: unknown): Promise<void> {
    const uid = this.#list.find(each => each.key === key)?.uid;
    const isOfParse = error instanceof WindlassError && error.job !== undefined;
    // What the job says of it is short; the upload has the rows.
    const upload = isOfParse && uid ? await getUpload(uid).catch(() => undefined) : undefined;
    this.#change(key, { state: 'failed', error, upload });
  }
}

const askBefore = (event: BeforeUnloadEvent) => event.preventDefault();

export const getUpload = (uid: string): Promise<Upload> =>
  unwrap(windlass.api.GET('/api/uploads/{uid}', { params: { path: { uid } } }));

/** Its parts are removed. */
export async function abandonUpload(uid: string): Promise<void> {
  await unwrap(windlass.api.DELETE('/api/uploads/{uid}', { params: { path: { uid } } }));
  forgetUpload(uid);
}

export const uploadTransfers = new UploadTransfers();
// They are of the user that chose them, and would be sent as another one. What was begun can be gone on with.
whenUserLeaves(() => uploadTransfers.forget());
