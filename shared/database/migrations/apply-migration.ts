import type { Migration, Statement } from './migration-files.ts';
import { LOCK_TIMEOUT, type MigrationSession } from './session.ts';

/** Keys of one batch: few enough that their rows are locked for a moment only. */
const BATCH = 1_000;
/** A batch has locked many rows while it waits for one more. */
const BATCH_LOCK_TIMEOUT = '200ms';

/** How far a migration is: the number of its next statement, and where that one stands. */
interface Progress {
  statement: number;
  /** The last key of the last batch, or BEGUN. */
  position: string | null;
}
/** The position of an index that was perhaps created or dropped, in whole or in part. */
const BEGUN = 'begun';

interface Step<S extends Statement = Statement> {
  session: MigrationSession;
  statement: S;
  label: string;
  position: string | null;
  /** Stores how far the statement is; `done`: it has ended. Committed with the transaction, where there is one. */
  save(progress: { position: string } | 'done'): Promise<void>;
}
type Of<F extends Statement['form']> = Step<Extract<Statement, { form: F }>>;

/**
 * Applies what is left of a migration. Each statement commits by itself, with its number, so that it holds no lock while
 * another one waits for one, and a run that is cut goes on where it stood.
 */
export async function applyMigration(session: MigrationSession, migration: Migration) {
  const { client } = session;
  const { tag, when, hash, statements } = migration;
  const progress = await readProgress(session, migration);
  for (const [n, statement] of statements.entries()) {
    if (n < progress.statement) continue;
    const label = `Migration ${tag}, statement ${n + 1} of ${statements.length},`;
    const position = n === progress.statement ? progress.position : null;
    const save: Step['save'] = async reached => {
      const [next, at] = reached === 'done' ? [n + 1, null] : [n, reached.position];
      await client.query(
        `insert into drizzle.migration_progress (migration, hash, statement, position) values ($1, $2, $3, $4)
          on conflict (migration) do update set statement = excluded.statement, position = excluded.position`,
        [when, hash, next, at],
      );
    };
    await applyStatement({ session, statement, label, position, save });
  }
  await session.transaction(async () => {
    await client.query(
      'insert into drizzle.__drizzle_migrations (hash, created_at) values ($1, $2)',
      [hash, when],
    );
    await client.query('delete from drizzle.migration_progress where migration = $1', [when]);
  });
}

async function readProgress(
  { client }: MigrationSession,
  { tag, when, hash }: Migration,
): Promise<Progress> {
  const { rows } = await client.query<Progress & { hash: string }>(
    'select hash, statement, position from drizzle.migration_progress where migration = $1',
    [when],
  );
  const [found] = rows;
  if (found && found.hash !== hash)
    throw new Error(`Migration ${tag} was changed after a part of it had been applied.`);
  return found ?? { statement: 0, position: null };
}

function applyStatement(step: Step): Promise<void> {
  const { form } = step.statement;
  if (form === 'plain') return applyPlain(step as Of<'plain'>);
  if (form === 'concurrent') return applyConcurrent(step as Of<'concurrent'>);
  return applyBatches(step as Of<'batches'>);
}

async function applyPlain({ session, statement, label, save }: Of<'plain'>): Promise<void> {
  const work = () =>
    session.transaction(async () => {
      await session.client.query(statement.text);
      await save('done');
    });
  await session.tell(label, () => session.retry(label, work));
}

/**
 * It may wait as long as it likes: its lock keeps nobody from reading and writing. A run that was cut leaves an invalid
 * index, which is dropped and built again.
 */
async function applyConcurrent(step: Of<'concurrent'>): Promise<void> {
  const { session, statement, label, position, save } = step;
  const { client } = session;
  const { creates, index } = statement;
  /** Undefined: there is no such index. */
  const isValid = async () => {
    const { rows } = await client.query<{ indisvalid: boolean }>(
      'select indisvalid from pg_index where indexrelid = to_regclass($1)',
      [index],
    );
    return rows[0]?.indisvalid;
  };
  let begun = position === BEGUN;
  const work = async () => {
    const valid = await isValid();
    if (begun) {
      if (valid === (creates ? true : undefined)) return;
      if (creates && valid === false) await client.query(`drop index concurrently ${index}`);
    } else {
      if (creates && valid !== undefined) throw new Error(`${index} exists already`);
      await save({ position: BEGUN });
      begun = true;
    }
    await client.query(statement.text);
  };
  await client.query('set lock_timeout = 0');
  await session.tell(label, () => session.retry(label, work));
  await client.query(`set lock_timeout = '${LOCK_TIMEOUT}'`);
  await save('done');
}

/** Each batch commits with its last key. */
async function applyBatches(step: Of<'batches'>): Promise<void> {
  const { session, statement, label, save } = step;
  const { client } = session;
  const { table, key, text } = statement;
  let last = step.position;
  let changed = 0;
  const next = async () => {
    await client.query(`set local lock_timeout = '${BATCH_LOCK_TIMEOUT}'`);
    const { rows } = await client.query<{ key: string }>(
      `select key::text from (
          select distinct ${key} as key from ${table} where ${last === null ? '$1::text is null' : `${key} > $1`}
          order by 1 limit ${BATCH}
        ) as batch order by batch.key`,
      [last],
    );
    const keys = rows.map(row => row.key);
    const end = keys.at(-1);
    if (end === undefined) {
      await save('done');
      return { end, count: 0 };
    }
    const { rowCount } = await client.query(text, [keys]);
    await save({ position: end });
    return { end, count: rowCount ?? 0 };
  };
  const work = async () => {
    for (;;) {
      const { end, count } = await session.retry(label, () => session.transaction(next));
      if (end === undefined) return;
      last = end;
      changed += count;
    }
  };
  await session.tell(label, work, () => `${changed} rows changed`);
}
