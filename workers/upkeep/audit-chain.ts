import { and, asc, eq, gt, gte, lte, sql } from 'drizzle-orm';
import { auditHash, toAuditEntry } from '../../shared/audit/audit.ts';
import type { Database, Tx } from '../../shared/database/connect.ts';
import { auditChain, auditEntries, auditPending } from '../../shared/database/schema.ts';
import { tryLock } from '../../shared/database/try-lock.ts';
import type { WorkerContext } from '../context.ts';
import { removeInBatches } from './remove-in-batches.ts';

/** Entries of one transaction. */
const BATCH = 1_000;

type Context = Pick<WorkerContext, 'database' | 'stopping'>;

/**
 * Moves pending entries to the end of the chain, in one process at a time (decision 38). Only here entries get numbers:
 * numbers given at the write would not follow the order of the commits.
 */
export async function appendAudit({ database, stopping }: Context): Promise<void> {
  let appended = BATCH;
  while (appended === BATCH && !stopping.aborted && (await hasPending(database)))
    appended = await database.db.transaction(appendBatch);
}

/** Asked before a transaction, whose begin and commit were a fifth of all statements of a service at rest. */
async function hasPending({ db }: Database): Promise<boolean> {
  const [any] = await db.select({ id: auditPending.id }).from(auditPending).limit(1);
  return any !== undefined;
}

async function appendBatch(tx: Tx): Promise<number> {
  const chain = await lockChain(tx);
  if (!chain) return 0;
  const oldest = tx
    .select({ id: auditPending.id })
    .from(auditPending)
    .orderBy(asc(auditPending.id))
    .limit(BATCH);
  const pending = await tx
    .delete(auditPending)
    .where(sql`${auditPending.id} = any(array(${oldest}))`)
    .returning();
  let { lastSeq, lastHash } = chain;
  const rows = pending
    .sort((a, b) => a.id - b.id)
    .map(({ id: _, ...told }) => {
      lastSeq += 1;
      lastHash = auditHash(lastHash, toAuditEntry({ ...told, seq: lastSeq }));
      const { requestId: request_id, ...rest } = told;
      return { ...rest, request_id, seq: lastSeq, hash: lastHash };
    });
  if (rows.length === 0) return 0;
  // One parameter: ten thousand make the driver and the server several times as slow.
  await tx.execute(sql`
    insert into ${auditEntries}
    select * from json_populate_recordset(null::${auditEntries}, ${JSON.stringify(rows)}::json)`);
  await tx.update(auditChain).set({ lastSeq, lastHash });
  return rows.length;
}

/** Removes entries older than AUDIT_RETENTION_DAYS from the front of the chain; keeps the last one's hash. */
export async function removeOldAudit(
  context: Context & { config: Pick<WorkerContext['config'], 'AUDIT_RETENTION_DAYS'> },
): Promise<void> {
  const { config, database, stopping } = context;
  const days = config.AUDIT_RETENTION_DAYS;
  if (days === 0) return;
  const removeSome = () => database.db.transaction(tx => removeBatch(tx, days));
  await removeInBatches(stopping, BATCH, removeSome);
}

async function removeBatch(tx: Tx, days: number): Promise<number> {
  const chain = await lockChain(tx);
  if (!chain) return 0;
  const first = await tx
    .select()
    .from(auditEntries)
    .where(gte(auditEntries.seq, chain.beforeSeq))
    .orderBy(asc(auditEntries.seq))
    .limit(BATCH);
  const last = first[(await countOld(tx, first, days)) - 1];
  if (!last) return 0;
  await tx.delete(auditEntries).where(lte(auditEntries.seq, last.seq));
  await tx.update(auditChain).set({ beforeSeq: last.seq, beforeHash: last.hash });
  return first.indexOf(last) + 1;
}

/**
 * How many go: those up to the first that is kept, as neighbours may be out of order by as long as a transaction lasts. One
 * from a time when the clock was ahead is as old as the next that is not.
 */
async function countOld(tx: Tx, entries: { seq: number; time: Date }[], days: number) {
  const [clock] = await tx.execute<{ now: string; due: string }>(
    sql`select now(), now() - make_interval(days => ${days}) as due`,
  );
  const [now, due] = [new Date(clock?.now ?? 0), new Date(clock?.due ?? 0)];
  const isAhead = ({ time }: { time: Date }) => time > now;
  const kept = entries.findIndex(entry => entry.time >= due && !isAhead(entry));
  const until = kept < 0 ? entries.length : kept;
  const old = entries.slice(0, until).findLastIndex(entry => !isAhead(entry)) + 1;
  if (old > 0 || until < BATCH) return old;
  const [next] = await tx
    .select({ time: auditEntries.time })
    .from(auditEntries)
    .where(and(gt(auditEntries.seq, entries.at(-1)?.seq ?? 0), sql`${auditEntries.time} <= now()`))
    .orderBy(asc(auditEntries.seq))
    .limit(1);
  return next && next.time < due ? until : 0;
}

/** The chain's row, unless another process has it. */
async function lockChain(tx: Tx): Promise<typeof auditChain.$inferSelect | undefined> {
  if (!(await tryLock(tx, 'auditChain'))) return undefined;
  const [chain] = await tx.select().from(auditChain).where(eq(auditChain.id, 1)).for('update');
  return chain;
}
