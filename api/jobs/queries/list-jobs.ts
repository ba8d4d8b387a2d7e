import { and, desc, eq, gte, inArray, lt, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { z } from 'zod';
import type { Db, Tx } from '../../../shared/database/connect.ts';
import { jobs } from '../../../shared/database/schema.ts';
import { timestampOf } from '../../../shared/database/timestamp.ts';
import { newId } from '../../../shared/ids.ts';
import { JOB_KINDS } from '../../../shared/jobs/catalog.ts';
import { isOpenByOwner } from '../../../shared/jobs/job-conditions.ts';
import { type JobSummary, summaryColumns } from '../../../shared/jobs/job-record.ts';
import { JOB_STATES } from '../../../shared/jobs/job-states.ts';
import { limitPageBytes, pageQuery, toPage } from '../../http/pagination.ts';
import { queryText } from '../../http/query-text.ts';
import { zonedTime } from '../../http/zoned-time.ts';

/**
 * Limit on the jobs that a page reads, however few of them match: it may be short or empty, and `next` goes on. So no
 * page costs more than another, without an index for each filter.
 */
const WINDOW = 10_000;
/** Most that the clock of the process that made an id may differ from the database's. */
const CLOCK_ERROR_MS = 86_400_000;

const repeatable = <T extends readonly [string, ...string[]]>(words: T) =>
  z.preprocess(
    given => (typeof given === 'string' ? [given] : given),
    z.array(z.enum(words)).min(1).max(words.length).optional(),
  );

export const jobsQuery = pageQuery.extend({
  state: repeatable(JOB_STATES),
  kind: repeatable(JOB_KINDS as [string, ...string[]]),
  host: queryText.optional(),
  session: queryText.optional(),
  project: queryText.optional(),
  model: queryText.optional(),
  name: queryText.optional(),
  label: queryText.min(1).max(200).optional().describe('A part of the label, in any case.'),
  since: zonedTime.optional().describe('Created then or later.'),
  until: zonedTime.optional().describe('Created before that.'),
  owner: queryText
    .min(1)
    .optional()
    .describe("For server administrators: another user, or `*`. Others' work is not looked into."),
});
export type JobsQuery = z.output<typeof jobsQuery>;

const SNAPSHOT = { isolationLevel: 'repeatable read', accessMode: 'read only' } as const;

/** Texts that are not large may have 100 kB in all. For larger pages than this, sizes are read first. */
const USUAL_PAGE = 100;
/** Size of large texts as stored, compressed, which is known without reading them. A parse may have several 100 kB. */
const LARGE_BYTES = 8_000;
/** Bytes of a job beside these texts. */
const JOB_BYTES = 600;

/** What may be long, in words of a file or a host. */
const TEXTS = ['result', 'error', 'batch'] as const;

const sumOf = (sizes: SQL[]) =>
  sql.join(
    sizes.map(size => sql`coalesce(${size}, 0)`),
    sql` + `,
  );
const stored = sumOf(TEXTS.map(name => sql`pg_column_size(${jobs[name]})`));
const isLarge = sql<boolean>`${stored} > ${sql.raw(String(LARGE_BYTES))}`;
const columnsWith = (readOf: (column: SQLWrapper) => SQL) => ({
  ...summaryColumns,
  result: readOf(jobs.result).mapWith(jobs.result).as('result'),
  error: readOf(jobs.error).mapWith(jobs.error).as('error'),
  batch: readOf(jobs.batch).mapWith(jobs.batch).as('batch'),
  isLarge: isLarge.as('is_large'),
});
const wholeColumns = columnsWith(column => sql`${column}`);
/** Large texts are not even read. */
const usualColumns = columnsWith(column => sql`case when ${isLarge} then null else ${column} end`);

interface JobList {
  /** Undefined: of all. */
  owner: string | undefined;
  query: JobsQuery;
  /** Called with the bytes of a large page, or of large jobs, before it is read. */
  reserve: (bytes: number) => Promise<void>;
}

/** The jobs of a user, or of all, that match; the latest first. A page of large ones has fewer than `limit`. */
export async function listJobs(
  db: Db,
  { owner, query, reserve }: JobList,
): Promise<{ items: JobSummary[]; next: string | null }> {
  const { after, since, until } = query;
  const matches = matching(query);
  const range = and(
    owner === undefined ? undefined : eq(jobs.owner, owner),
    after === undefined ? undefined : lt(jobs.id, after),
    since === undefined ? undefined : gte(jobs.id, firstIdOf(since, -CLOCK_ERROR_MS)),
    until === undefined ? undefined : lt(jobs.id, firstIdOf(until, CLOCK_ERROR_MS)),
  );
  const asksOpen = query.state?.every(state => state === 'queued' || state === 'running') ?? false;
  const looked = asksOpen ? openJobs(db, range) : undefined;
  const find = (tx: Tx, count: number, columns = wholeColumns) => {
    const inWindow = tx
      .select(columns)
      .from(jobs)
      .where(looked ? sql`${jobs.id} = any(array(${looked}))` : range)
      .orderBy(desc(jobs.id));
    // drizzle takes a fifth of a page's processor time to write one more level of the query.
    if (!matches) return inWindow.limit(count);
    const window = inWindow.limit(WINDOW).as('jobs');
    return tx.select().from(window).where(matches).orderBy(desc(window.id)).limit(count);
  };
  const readPage = async (limit: number, columns = wholeColumns) => {
    const read = async (tx: Tx) => {
      const rows = await find(tx, limit + 1, columns);
      const page = toPage(rows as (JobSummary & { isLarge: boolean })[], limit, ({ id }) => id);
      if (page.next !== null || !matches) return page;
      return { ...page, next: await endOfWindow(tx, range, asksOpen) };
    };
    // Jobs that come or go between the two statements would move the window's end.
    return matches ? db.transaction(read, SNAPSHOT) : read(db);
  };
  const { limit } = query;
  const usual = limit > USUAL_PAGE ? undefined : await readPage(limit, usualColumns);
  if (usual && !usual.items.some(row => row.isLarge)) return usual;
  const page = find(db, limit).as('page');
  const texts = sumOf(TEXTS.map(name => sql`octet_length(${page[name]}::text)`));
  const bytes = sql<number>`${JOB_BYTES} + ${texts}`;
  const sizes = await db.select({ bytes }).from(page).orderBy(desc(page.id));
  const fitting = limitPageBytes(sizes.map(row => row.bytes));
  // They are held twice, as rows and as JSON.
  await reserve(2 * fitting.bytes);
  return readPage(Math.max(1, fitting.count));
}

/** The ids in a subquery: otherwise the planner prefers an index that is in order to the index of open jobs. */
function openJobs(db: Db, range: SQL | undefined): SQL {
  const open = db.select({ id: jobs.id }).from(jobs).where(and(range, isOpenByOwner));
  return sql`with open as materialized (${open}) select id from open order by id desc limit ${sql.raw(String(WINDOW))}`;
}

/** Where the next page begins when this one has looked through the whole window; null where that was all. */
async function endOfWindow(
  db: Tx,
  range: SQL | undefined,
  asksOpen: boolean,
): Promise<string | null> {
  const rest = sql.raw(`offset ${WINDOW - 1} limit 1`);
  const [last] = await db.execute<{ id: string }>(
    asksOpen
      ? sql`select id from (${openJobs(db, range)}) looked order by id desc ${rest}`
      : sql`select id from ${jobs} where ${range ?? sql`true`} order by id desc ${rest}`,
  );
  return last?.id ?? null;
}

function matching(query: JobsQuery): SQL | undefined {
  const { state, kind, host, session, project, model, name, label, since, until } = query;
  const equals = Object.entries({ host, session, project, model, name }) as [
    'host' | 'session' | 'project' | 'model' | 'name',
    string | undefined,
  ][];
  return and(
    state && inArray(jobs.state, state),
    kind && inArray(jobs.kind, kind),
    ...equals.map(([column, value]) => (value === undefined ? undefined : eq(jobs[column], value))),
    label === undefined ? undefined : sql`strpos(lower(${jobs.label}), lower(${label})) > 0`,
    since === undefined ? undefined : sql`${jobs.created} >= ${timestampOf(since)}`,
    until === undefined ? undefined : sql`${jobs.created} < ${timestampOf(until)}`,
  );
}

/** The least id that is made at that time. */
const firstIdOf = (time: string, plusMs: number) =>
  `${newId(Math.max(0, Date.parse(time) + plusMs)).slice(0, 10)}${'0'.repeat(16)}`;
