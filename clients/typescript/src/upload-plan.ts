import type { components } from './schema.ts';

export type StoredPart = components['schemas']['UploadPart'];

/** Bytes of a file that are sent at once, under a number. */
export interface Part {
  fid: number;
  pid: number;
  start: number;
  size: number;
  /** Whether it was this process's turn to send it; its digest is known then, where one can be computed. */
  isRead?: boolean;
  digest?: string;
}

const PART_SIZE = 8 << 20;
/** Smaller ones cost more than they save. */
const LEAST = 256 << 10;
/** The service takes 100,000 parts: so many at the size of the beginning, and so many smaller ones. */
const MAX_PARTS = 50_000;

/**
 * Which bytes of the files are which parts. The service joins parts by their numbers: a part that is too large for its
 * link can be replaced only with all that follow, which get smaller. A resumed upload takes the sizes of its stored
 * parts.
 */
export class UploadPlan {
  readonly total: number;
  /** Parts do not get smaller than that. */
  readonly least: number;
  readonly #sizes: number[];
  #stored: StoredPart[];
  #parts: Part[];
  readonly #through = new Set<Part>();
  #sent = 0;
  #at = 0;

  constructor(sizes: number[], { partSize, stored }: { partSize?: number; stored: StoredPart[] }) {
    this.#sizes = sizes;
    this.total = sizes.reduce((sum, size) => sum + size, 0);
    const fewest = Math.ceil(this.total / MAX_PARTS);
    this.least = Math.max(LEAST, fewest);
    this.#stored = stored;
    this.#parts = this.#cutFrom(0, partSize ?? Math.max(PART_SIZE, fewest));
  }

  /** The next part that is to be sent. */
  next(): Part | undefined {
    for (let part = this.#parts[this.#at]; part; part = this.#parts[this.#at]) {
      this.#at++;
      if (!this.#through.has(part)) return part;
    }
    return undefined;
  }

  /** It is stored. */
  pass(part: Part): void {
    this.#through.add(part);
    this.#sent += part.size;
  }

  /** Bytes that are stored. */
  get sent(): number {
    return this.#sent;
  }

  /** The number of parts of each file. */
  get counts(): number[] {
    const counts = this.#sizes.map(() => 0);
    for (const { fid, pid } of this.#parts) counts[fid] = pid + 1;
    return counts;
  }

  /** Takes those parts for stored whose turn has come and that the service lists, and repeats the others. */
  compare(stored: StoredPart[]): void {
    const found = new Map(stored.map(part => [keyOf(part), part]));
    this.#stored = stored;
    this.#through.clear();
    this.#sent = 0;
    for (const part of this.#parts)
      if (part.isRead && isStored(part, found.get(keyOf(part)))) this.pass(part);
    this.#at = 0;
  }

  /** Whether all is stored. */
  get isThrough(): boolean {
    return this.#through.size === this.#parts.length;
  }

  /** Makes parts of this size from the first one on that has not passed. */
  shrink(partSize: number): void {
    const first = this.#parts.findIndex(part => !this.#through.has(part));
    const { fid, pid, start } = this.#parts[first] as Part;
    for (const part of this.#parts.slice(first))
      if (this.#through.delete(part)) this.#sent -= part.size;
    const end = this.#sizes[fid] ?? 0;
    const count = this.#parts.filter(part => part.fid === fid && part.pid >= pid).length;
    const size = sizeFor(end - start, { size: partSize, count });
    this.#parts = [
      ...this.#parts.slice(0, first),
      ...cutEvenly({ fid, pid, start }, end, size),
      ...this.#cutFrom(fid + 1, partSize),
    ];
    this.#at = first;
  }

  #cutFrom(first: number, partSize: number): Part[] {
    const known = this.#sizes.map(() => new Map<number, number>());
    for (const part of this.#stored) known[part.fid]?.set(part.pid, part.size);
    return known
      .slice(first)
      .flatMap((sizes, n) =>
        cutLike(sizes, { fid: first + n, size: this.#sizes[first + n] ?? 0, partSize }),
      );
  }
}

export const keyOf = ({ fid, pid }: { fid: number; pid: number }) => `${fid}/${pid}`;

/** By size and digest; by its size alone where no digest can be computed. */
export const isStored = (part: Part, found: StoredPart | undefined): boolean =>
  found?.size === part.size && (part.digest === undefined || part.digest === found.digest);

/**
 * Cuts a file as its stored parts (sizes by number) were cut. Their bytes are compared later, so a wrong guess only
 * costs time. But there may never be fewer parts than are stored, since none can be removed.
 */
function cutLike(
  stored: Map<number, number>,
  { fid, size, partSize }: { fid: number; size: number; partSize: number },
): Part[] {
  const parts: Part[] = [];
  let start = 0;
  let last = Number.POSITIVE_INFINITY;
  const end = lastOf(stored);
  for (let pid = 0; start < size; pid++) {
    const given = stored.get(pid) ?? 0;
    // Parts only get smaller: one that is larger than the part before it is left from an earlier plan. Those after it
    // need bytes.
    const rest = size - start - given;
    if (given <= 0 || given > last || rest < Math.max(0, end - pid)) break;
    const isTold = given >= LEAST || given === last || given === stored.get(pid + 1);
    if (!isTold && rest > 0) break;
    parts.push({ fid, pid, start, size: given });
    start += given;
    last = given;
  }
  const pid = parts.length;
  if (start === size && pid > 0) return parts;
  return [
    ...parts,
    ...cutEvenly(
      { fid, pid, start },
      size,
      sizeAfter(pid, stored, { left: size - start, last, partSize }),
    ),
  ];
}

/** What is stored after a gap is of one size, but for the end of the file and for what an earlier plan left. */
function sizeAfter(
  pid: number,
  stored: Map<number, number>,
  { left, last, partSize }: { left: number; last: number; partSize: number },
): number {
  const usual = last < Number.POSITIVE_INFINITY ? last : partSize;
  const later = [...stored].filter(([n, size]) => n >= pid && size <= last);
  const largest = later.reduce((most, [, size]) => Math.max(most, size), 0);
  const alike = later.filter(([, size]) => size === largest).length;
  // A single one that is small may be the end of the file.
  const told = largest >= usual || alike > 1 ? largest : usual;
  const size = Math.max(1, told, Math.ceil(left / MAX_PARTS));
  const count = lastOf(stored) + 1 - pid;
  return sizeFor(left, { size, count });
}

/** The highest number; -1 where there is none. */
const lastOf = (stored: Map<number, number>): number =>
  [...stored.keys()].reduce((highest, pid) => Math.max(highest, pid), -1);

/** That size, or a smaller one where there would be fewer parts. */
const sizeFor = (left: number, { size, count }: { size: number; count: number }): number =>
  Math.ceil(left / size) >= count ? size : Math.max(1, Math.floor(left / count));

/** At least one part, of an empty file too. */
function cutEvenly(
  { fid, pid, start }: { fid: number; pid: number; start: number },
  end: number,
  partSize: number,
): Part[] {
  const count = Math.max(1, Math.ceil((end - start) / partSize));
  return Array.from({ length: count }, (_, n) => {
    const from = start + n * partSize;
    return { fid, pid: pid + n, start: from, size: Math.min(end, from + partSize) - from };
  });
}
