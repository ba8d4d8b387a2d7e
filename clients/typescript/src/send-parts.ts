import type { Connection } from './connection.ts';
import { requireJson } from './foreign-answer.ts';
import { ANSWER_MS, isPassing } from './http.ts';
import { Losses } from './losses.ts';
import { createSha256 } from './sha256.ts';
import { strongTag } from './strong-tag.ts';
import { timeToSend } from './time-to-send.ts';
import { Turns } from './turns.ts';
import { isStored, keyOf, type Part, type StoredPart, type UploadPlan } from './upload-plan.ts';

/** Bytes that are read in pieces: a File or Blob, or what openFile() of `@windlass/client/node` gives. */
export interface Source {
  readonly name?: string | undefined;
  readonly size: number;
  slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> };
  /** Throws `changed` where it is no longer as it was. */
  check?(): Promise<void>;
}

export interface SendOptions {
  /**
   * Bytes of a part: 8 MiB, or more where a file would have too many parts. Over links that break sooner parts get
   * smaller, down to 256 KiB.
   */
  partSize?: number | undefined;
  /** How many parts are sent at once. Default: 4. */
  parallel?: number | undefined;
  /** Told how many bytes the service has. */
  onProgress?: ((progress: { sent: number; total: number }) => void) | undefined;
  /** Ends the upload, with the signal's reason as error; it can be resumed. */
  signal?: AbortSignal | undefined;
}

/** A part is too large for the link. */
class TooLarge extends Error {
  readonly part: Part;

  constructor(part: Part) {
    super('The link is cut before a part is through.');
    this.part = part;
  }
}

export interface PartsToSend {
  /** The upload's id. */
  id: string;
  files: Source[];
  plan: UploadPlan;
  options: SendOptions;
}

/** Sends the parts of an upload, several at once, and each again whose connection is lost. */
export class PartSender {
  readonly #connection: Connection;
  readonly #given: PartsToSend;
  readonly #turns = new Turns();
  #stored = new Map<string, StoredPart>();
  /** The losses of parts that were sent alone. */
  readonly #losses: Losses;
  #told = 0;
  #tag: string | undefined;

  constructor(connection: Connection, given: PartsToSend) {
    this.#connection = connection;
    this.#given = given;
    this.#losses = new Losses(connection.http);
  }

  /** Sends until all parts are stored; parts that were stored before are compared by size and digest. */
  async send(stored: StoredPart[]): Promise<void> {
    this.#keep(stored);
    this.#tell();
    await this.#sendRest(stored.length > 0);
  }

  /** Compares all parts that are stored by now, and sends those that are missing or differ. */
  async sendAgain(): Promise<void> {
    this.#given.plan.compare(await this.#list());
    await this.#sendRest(true);
  }

  /** The tag of the upload's state in which all stored parts were compared; undefined where that was not needed. */
  get tag(): string | undefined {
    return this.#tag;
  }

  async #sendRest(isCompared: boolean): Promise<void> {
    const { plan } = this.#given;
    let mayDiffer = isCompared;
    while (!plan.isThrough) {
      const tooLarge = await this.#sendRound();
      if (tooLarge) await this.#makeSmaller(tooLarge);
      mayDiffer ||= tooLarge !== undefined;
      // An abandoned request may have been stored after the part that replaced its own.
      if (plan.isThrough && mayDiffer) plan.compare(await this.#list());
    }
  }

  /** Sends what has not passed, until there is nothing more or parts must get smaller. */
  async #sendRound(): Promise<Part | undefined> {
    const { plan, options } = this.#given;
    // The first part that cannot be sent ends the others.
    const failed = new AbortController();
    const signal = options.signal
      ? AbortSignal.any([options.signal, failed.signal])
      : failed.signal;
    const sendParts = async () => {
      for (let part = plan.next(); part; part = plan.next()) {
        await this.#sendPart(part, signal);
        plan.pass(part);
        this.#tell();
      }
    };
    const sending = Array.from({ length: options.parallel ?? 4 }, sendParts);
    try {
      await Promise.all(sending);
      return undefined;
    } catch (error) {
      failed.abort(error);
      await Promise.allSettled(sending);
      if (error instanceof TooLarge) return error.part;
      throw error;
    }
  }

  async #makeSmaller({ size }: Part): Promise<void> {
    const { plan } = this.#given;
    const before = plan.sent;
    plan.compare(await this.#list());
    this.#losses.reset();
    // The part may have come through, and its answer been lost.
    if (plan.sent <= before && !plan.isThrough)
      plan.shrink(Math.max(plan.least, Math.ceil(size / 2)));
  }

  async #sendPart(part: Part, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { id, files, plan } = this.#given;
    const { http } = this.#connection;
    const { fid, pid, start, size } = part;
    const body = await (files[fid] as Source).slice(start, start + size).arrayBuffer();
    part.digest = await digestOf(body);
    part.isRead = true;
    if (isStored(part, this.#stored.get(keyOf(part)))) return;
    this.#stored.delete(keyOf(part));
    const headers: Record<string, string> = { 'Content-Type': 'application/octet-stream' };
    if (part.digest !== undefined) headers['Content-Digest'] = `sha-256=:${part.digest}:`;
    const path = `/api/uploads/${id}/files/${fid}/parts/${pid}`;
    // What is lost is sent again below.
    const sending = { signal, patience: Infinity, timeoutMs: ANSWER_MS + timeToSend(size) };
    let begun = 0;
    let isAlone = false;
    const put = () => {
      begun = performance.now();
      isAlone = this.#turns.isAlone;
      return http.request(path, { method: 'PUT', headers, body }, sending);
    };
    for (let attempt = 0; ; attempt++) {
      try {
        await (await this.#turns.take(put)).body?.cancel();
        this.#losses.reset();
        return;
      } catch (error) {
        signal.throwIfAborted();
        if (!isPassing(error)) throw error;
        if (isAlone) await this.#losses.add(error, begun, signal);
        if (this.#losses.areEnough && size > plan.least) throw new TooLarge(part);
        await http.pause(attempt, { error, signal });
      }
    }
  }

  async #list(): Promise<StoredPart[]> {
    const { id, options } = this.#given;
    const sending = { signal: options.signal, timeoutMs: ANSWER_MS, patience: Infinity };
    const response = await this.#connection.http.request(`/api/uploads/${id}`, {}, sending);
    const { parts } = (await (await requireJson(response)).json()) as { parts: StoredPart[] };
    this.#keep(parts);
    this.#tag = strongTag(response.headers.get('ETag'));
    return parts;
  }

  #keep(stored: StoredPart[]): void {
    this.#stored = new Map(stored.map(part => [keyOf(part), part]));
  }

  /** Tells the progress, which never goes back, though parts that get smaller are sent again. */
  #tell(): void {
    const { plan, options } = this.#given;
    this.#told = Math.max(this.#told, plan.sent);
    options.onProgress?.({ sent: this.#told, total: plan.total });
  }
}

/** SHA-256 in base64. */
export async function digestOf(bytes: ArrayBuffer): Promise<string> {
  const digest = crypto.subtle
    ? new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
    : digestHere(bytes);
  return btoa(String.fromCharCode(...digest));
}

/** SHA-256 in a page that was not loaded by https, where browsers compute none. */
function digestHere(bytes: ArrayBuffer): Uint8Array {
  const hash = createSha256();
  hash.update(new Uint8Array(bytes));
  return hash.digest();
}
