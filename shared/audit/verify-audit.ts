import { asc, gt, sql } from 'drizzle-orm';
import type { Database, Tx } from '../database/connect.ts';
import { auditChain, auditEntries, auditPending, workers } from '../database/schema.ts';
import { IS_ALIVE } from '../jobs/lease.ts';
import { auditHash, toAuditEntry } from './audit.ts';

const BATCH = 5_000;

interface AuditVerdict {
  /** What is wrong, in a sentence; undefined where nothing is. */
  problem?: string;
  entries: number;
  first: number;
  last: number;
  /**
   * The hash before the first entry, and that of the last one: kept elsewhere, they reveal a chain that was replaced or
   * cut.
   */
  beforeHash: string;
  lastHash: string;
  pending: number;
  /**
   * How long the oldest pending entry has waited while workers are alive, who chain entries within a second; else 0.
   */
  pendingSeconds: number;
}

/** Reads the whole chain, in one snapshot, and stops at the first entry that does not fit. */
export function verifyAudit({ db }: Database): Promise<AuditVerdict> {
  return db.transaction(verify, { isolationLevel: 'repeatable read', accessMode: 'read only' });
}

async function verify(tx: Tx): Promise<AuditVerdict> {
  const [chain] = await tx.select().from(auditChain);
  const isServed = sql`exists (select from ${workers} where ${sql.raw(IS_ALIVE)})`;
  const seconds = sql<number>`coalesce(extract(epoch from now() - min(${auditPending.time}) filter (where ${isServed})), 0)::float8`;
  const [waiting] = await tx.select({ n: sql<number>`count(*)::int`, seconds }).from(auditPending);
  const ends = { beforeHash: chain?.beforeHash ?? '', lastHash: chain?.lastHash ?? '' };
  const verdict = {
    entries: 0,
    first: 0,
    last: 0,
    ...ends,
    pending: waiting?.n ?? 0,
    pendingSeconds: waiting?.seconds ?? 0,
  };
  if (!chain) return { ...verdict, problem: 'The beginning and the end of the chain are missing.' };
  let { beforeSeq: seq, beforeHash: hash } = chain;
  verdict.first = seq + 1;
  verdict.last = seq;
  for (;;) {
    const rows = await tx
      .select()
      .from(auditEntries)
      .where(gt(auditEntries.seq, verdict.entries === 0 ? -1 : seq))
      .orderBy(asc(auditEntries.seq))
      .limit(BATCH);
    for (const row of rows) {
      const problem = compare(row, { seq, hash });
      if (problem) return { ...verdict, problem };
      seq = row.seq;
      hash = row.hash;
      verdict.entries++;
      verdict.last = seq;
    }
    if (rows.length < BATCH) break;
  }
  if (seq !== chain.lastSeq || hash !== chain.lastHash) {
    const end = `The chain ends with entry ${chain.lastSeq}, and the last entry is ${seq}`;
    return { ...verdict, problem: `${end}: entries were removed, or added by hand.` };
  }
  return verdict;
}

function compare(
  row: typeof auditEntries.$inferSelect,
  before: { seq: number; hash: string },
): string | undefined {
  if (row.seq > before.seq + 1)
    return `Entry ${before.seq + 1} is missing: the next one is ${row.seq}.`;
  if (row.seq <= before.seq)
    return `Entry ${row.seq} stands before the beginning of the chain, ${before.seq + 1}.`;
  if (auditHash(before.hash, toAuditEntry(row)) === row.hash) return undefined;
  return `Entry ${row.seq} does not match its hash: it was edited, or its order was.`;
}
