import { and, eq, sql } from 'drizzle-orm';
import type { Database, Tx } from '../../shared/database/connect.ts';
import { chunks, jobs } from '../../shared/database/schema.ts';
import { type OutputOffsets, type OutputStream, streamNumber } from '../../shared/jobs/output.ts';
import { type Claim, LeaseRevoked, leasedBy } from '../engine/claim.ts';
import { updateLeasedVisibly } from '../engine/leased-updates.ts';
import { DATABASE, retry } from '../engine/retry.ts';
import type { OutputSegments, Segment } from './output-segments.ts';
import type { Part } from './write-buffer.ts';

/** Writes one job's output under its lease. Every method throws LeaseRevoked when another worker has the job. */
export class OutputStore {
  readonly #database: Database;
  readonly #segments: OutputSegments;
  readonly #claim: Claim;
  /**
   * Number of the next chunk row, or direct bytes of a segment. Starts from the time, because rolled-up rows leave no
   * number behind.
   */
  #seq = Date.now() * 1_000;

  constructor(database: Database, segments: OutputSegments, claim: Claim) {
    this.#database = database;
    this.#segments = segments;
    this.#claim = claim;
  }

  /** Continues an earlier attempt's numbers; returns the bytes that it left in chunk rows, and how many rows these are. */
  async resume(): Promise<{ live: OutputOffsets; rows: OutputOffsets }> {
    const found = await this.#database.db
      .select({
        stream: chunks.stream,
        bytes: sql<number>`sum(octet_length(${chunks.bytes}))::int`,
        rows: sql<number>`count(*)::int`,
        seq: sql<number>`max(${chunks.seq})::float8`,
      })
      .from(chunks)
      .where(eq(chunks.job, this.#claim.id))
      .groupBy(chunks.stream);
    this.#seq = Math.max(this.#seq, ...found.map(row => row.seq + 1));
    const each = (what: 'bytes' | 'rows'): OutputOffsets => {
      const of = (stream: OutputStream) =>
        found.find(row => row.stream === streamNumber(stream))?.[what] ?? 0;
      return { stdout: of('stdout'), stderr: of('stderr') };
    };
    return { live: each('bytes'), rows: each('rows') };
  }

  /**
   * Commits a batch that begins at `from`: `segments`, and chunk rows for streams without one. Returns how many rows.
   */
  async commit(from: OutputOffsets, parts: Part[], segments: Segment[]): Promise<OutputOffsets> {
    const rows: (typeof chunks.$inferInsert)[] = [];
    const end = { ...from };
    const count = { stdout: 0, stderr: 0 };
    const numbered = segments.map(segment => ({ segment, seq: this.#seq++ }));
    for (const { stream, bytes } of parts) {
      const row = { job: this.#claim.id, stream: streamNumber(stream), start: end[stream], bytes };
      if (!segments.some(segment => segment.stream === stream)) {
        rows.push({ ...row, seq: this.#seq++ });
        count[stream]++;
      }
      end[stream] += bytes.length;
    }
    const write = async (tx: Tx) => {
      await this.#advance(tx, from, end);
      if (rows.length > 0) await tx.insert(chunks).values(rows);
      for (const { segment, seq } of numbered) await this.#segments.insert(tx, segment, seq);
    };
    await retry(async tries => {
      try {
        await this.#database.db.transaction(write);
      } catch (error) {
        // An earlier try without an answer may have been committed, even while this one waited for it.
        const mayBeStored = tries > 0 && error instanceof LeaseRevoked;
        if (!mayBeStored || !(await this.#isStored(end))) throw error;
      }
    }, DATABASE);
    return count;
  }

  /**
   * Moves a stream's first chunk rows into one object; returns how many bytes and rows. At any moment a reader finds each
   * byte in a row or in the object.
   */
  async rollUp(stream: OutputStream): Promise<{ bytes: number; rows: number }> {
    const put = await this.#segments.putChunks(stream);
    if (!put) return { bytes: 0, rows: 0 };
    const { segment, rows } = put;
    await this.#database.db.transaction(async tx => {
      await updateLeasedVisibly(tx, this.#claim, {});
      await this.#segments.insert(tx, segment);
    });
    return { bytes: segment.length, rows };
  }

  /** By compare-and-set, so that a try after one that was committed changes nothing. */
  async #advance(tx: Tx, from: OutputOffsets, end: OutputOffsets): Promise<void> {
    const rows = await tx
      .update(jobs)
      .set({
        stdoutBytes: end.stdout,
        stderrBytes: end.stderr,
        consecutiveLosses: 0,
        version: sql`${jobs.version} + 1`,
      })
      .where(and(leasedBy(this.#claim), hasStored(from)))
      .returning({ id: jobs.id });
    if (rows.length === 0) throw new LeaseRevoked(this.#claim.id);
  }

  /** Whether the commit whose answer was lost took place. */
  async #isStored(end: OutputOffsets): Promise<boolean> {
    const [row] = await this.#database.db
      .select({ stdout: jobs.stdoutBytes, stderr: jobs.stderrBytes })
      .from(jobs)
      .where(leasedBy(this.#claim));
    if (!row) throw new LeaseRevoked(this.#claim.id);
    return row.stdout === end.stdout && row.stderr === end.stderr;
  }
}

const hasStored = ({ stdout, stderr }: OutputOffsets) =>
  and(eq(jobs.stdoutBytes, stdout), eq(jobs.stderrBytes, stderr));
