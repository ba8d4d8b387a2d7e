import { getTableColumns, SQL } from 'drizzle-orm';
import { type JobRow, jobs } from '../../shared/database/schema.ts';
import type { JobKind } from '../../shared/jobs/catalog.ts';
import { createLog } from '../../shared/process/log.ts';
import type { JobContext, WorkerContext } from '../../workers/context.ts';

type Given<K extends JobKind> = Partial<Omit<JobContext<K>, 'job' | 'worker'>> & {
  job?: Partial<JobRow>;
  worker?: { [Part in keyof WorkerContext]?: Partial<WorkerContext[Part]> };
};

/**
 * An attempt at a job that only this process knows: what is written to its row is written to the `job` that the test gives. What the
 * test does not give, and it cannot do without, throws at its first use.
 */
export function makeJobContext<K extends JobKind>(given: Given<K>): JobContext<K> {
  const { job: columns = {}, worker = {}, ...parts } = given;
  const job = Object.assign(columns, Object.assign(newRow(), columns)) as JobRow;
  const write = async (set: Partial<JobRow>) => void Object.assign(job, set);
  const never = new AbortController().signal;
  const context = {
    sid: 's',
    token: 'token',
    log: createLog({ level: 'silent', name: 'test' }),
    signal: never,
    cleanupSignal: never,
    assertLeased: async () => {},
    update: write,
    updateVisibly: write,
    ...parts,
    job,
    worker: complete(worker, 'worker'),
  };
  return complete(context, 'context') as unknown as JobContext<K>;
}

/** A row as the database makes it, where it makes it without the time. */
function newRow(): JobRow {
  const columns = Object.entries(getTableColumns(jobs)).map(([name, column]) => {
    const isKnown = column.default !== undefined && !(column.default instanceof SQL);
    return [name, isKnown ? column.default : null];
  });
  return Object.fromEntries(columns) as JobRow;
}

const complete = <T extends object>(parts: T, what: string): T =>
  new Proxy(parts, {
    get: (target, name) => {
      if (name in target || typeof name === 'symbol') return Reflect.get(target, name);
      throw new Error(`the test gave its ${what} no ${name}`);
    },
  });
