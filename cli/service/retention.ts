import { sql } from 'drizzle-orm';
import { type Database, openDatabase } from '../../shared/database/connect.ts';
import { auditEntries, jobs, pendingDeletions, sessions } from '../../shared/database/schema.ts';
import { hasEnded } from '../../shared/jobs/job-conditions.ts';
import { sleep } from '../../shared/process/abort.ts';
import { type Config, readConfig } from '../../shared/settings/config.ts';
import { removeOldAudit } from '../../workers/upkeep/audit-chain.ts';
import { removeOldJobs } from '../../workers/upkeep/job-retention.ts';
import { removeOldSessions } from '../../workers/upkeep/session-retention.ts';
import { auditCommand } from '../audit-command.ts';
import { CommandError } from '../command-error.ts';
import { withDirectDatabase } from '../find-database.ts';
import { printRecord, printRecords } from '../output/print-records.ts';
import { formatAge } from '../output/table.ts';
import type { CommandContext } from './command-context.ts';

/** More are not counted: that would take long where millions are due. */
const MAX_COUNTED = 100_000;
/** The service's own upkeep, or pending deletions of objects, may delay a removal. */
const PAUSE_MS = 1_000;
/** Pauses without a change after which it is given up. */
const STUCK_ROUNDS = 60;

/** What is removed after a time. */
interface Rule {
  what: string;
  setting: 'JOB_RETENTION_DAYS' | 'AUDIT_RETENTION_DAYS';
  /** SQL: the times of what has ended, from the oldest on. */
  ends: ReturnType<typeof sql>;
}

const RULES: Rule[] = [
  {
    what: 'jobs',
    setting: 'JOB_RETENTION_DAYS',
    ends: sql`select finished as time from ${jobs} where ${hasEnded} order by finished`,
  },
  {
    what: 'sessions',
    setting: 'JOB_RETENTION_DAYS',
    ends: sql`select ended as time from ${sessions} where ended is not null and sealed is null
      and (select true from ${jobs} where ${jobs.session} = ${sessions.sid} limit 1) is null order by ended`,
  },
  {
    what: 'audit',
    setting: 'AUDIT_RETENTION_DAYS',
    ends: sql`select time from ${auditEntries} order by seq`,
  },
];

interface Due {
  what: string;
  /** 0: it is kept for good. */
  days: number;
  setting: string;
  /** At most MAX_COUNTED. */
  due: number;
  oldest: string | null;
}

/** `windlass retention show`: what is kept for how long by these settings, and what of it is due. */
export async function showRetention(
  context: CommandContext,
  { json }: { json?: boolean },
): Promise<void> {
  const config = readConfig(context.environment);
  const { rules, waiting } = await withOwnDatabase(context, config, async database => ({
    rules: await listDue(database, config),
    waiting: await countWaiting(database),
  }));
  await printRecords(rules, {
    columns: {
      WHAT: ({ what }) => what,
      KEPT: ({ days }) => kept(days),
      DUE: ({ due }) => (due >= MAX_COUNTED ? `${MAX_COUNTED} or more` : String(due)),
      OLDEST: ({ oldest }) => (oldest ? formatAge(oldest) : '-'),
      SETTING: ({ setting }) => setting,
    },
    json,
  });
  if (waiting > 0 && !json)
    process.stdout.write(`Objects that wait for their deletion: ${waiting}.\n`);
}

/** `windlass retention remove`: removes at once what is due, or the jobs and sessions that ended at least `days` days ago. */
export async function removeDue(
  context: CommandContext,
  { days, json }: { days?: number; json?: boolean },
): Promise<void> {
  if (days === 0) throw new CommandError('--days must be 1 or more.');
  const set = readConfig(context.environment);
  const config = days === undefined ? set : { ...set, JOB_RETENTION_DAYS: days };
  let removed = 0;
  await withOwnDatabase(context, config, async database => {
    const target = `jobs ${kept(config.JOB_RETENTION_DAYS)}, audit ${kept(config.AUDIT_RETENTION_DAYS)}`;
    await auditCommand(database.direct, 'retention.remove', target);
    const { stopping } = context.life;
    const metrics = {
      jobsRemoved: (count: number) => {
        removed += count;
      },
    };
    let left = '';
    for (let rounds = 0; !stopping.aborted && rounds < STUCK_ROUNDS; rounds++) {
      await removeOldJobs({ config, database, metrics, stopping });
      await removeOldSessions({ config, database, stopping });
      await removeOldAudit({ config, database, stopping });
      const due = (await listDue(database, config)).filter(rule => rule.due > 0);
      if (due.length === 0) return;
      if (left !== JSON.stringify(due)) rounds = 0;
      left = JSON.stringify(due);
      await sleep(stopping, PAUSE_MS);
    }
    throw new CommandError(`${removed} jobs were removed, and others that are due could not be.`, {
      hint: 'Look whether the service runs: it removes the objects of those that were removed first.',
    });
  });
  await printRecord(
    { jobs: removed },
    {
      sentence: `${removed} jobs were removed. The running service removes their bytes within minutes.`,
      json,
    },
  );
}

async function listDue({ db }: Database, config: Config): Promise<Due[]> {
  const found: Due[] = [];
  for (const { what, setting, ends } of RULES) {
    const days = config[setting];
    const [row] = await db.execute<{ due: number; oldest: string | null }>(sql`
      with oldest as (select * from (${ends}) as ends limit ${MAX_COUNTED})
      select count(*) filter (where ${days} > 0 and time < now() - make_interval(days => ${days}))::int as due,
        to_json(min(time)) #>> '{}' as oldest
      from oldest`);
    found.push({ what, days, setting, due: row?.due ?? 0, oldest: row?.oldest ?? null });
  }
  return found;
}

async function countWaiting({ db }: Database): Promise<number> {
  const [row] = await db.execute<{ n: number }>(
    sql`select count(*)::int as n from (select from ${pendingDeletions} limit ${MAX_COUNTED}) as waiting`,
  );
  return row?.n ?? 0;
}

function withOwnDatabase<T>(
  { life }: CommandContext,
  config: Config,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  return withDirectDatabase(config, life.stopping, async url => {
    const database = openDatabase(url, { max: 1 });
    try {
      return await work(database);
    } finally {
      await database.close();
    }
  });
}

const kept = (days: number) => (days === 0 ? 'for good' : `${days} days`);
