import type postgres from 'postgres';

/**
 * Ends what was open when a backup was taken and is not known since: jobs that reach a host may have run to their end after it,
 * and must not run again; remote sessions would log in anew. What works on stored bytes alone goes on. Returns how many jobs
 * ended.
 */
export async function endOpenWork(sql: postgres.TransactionSql, taken: string): Promise<number> {
  const error = JSON.stringify({
    code: 'outcome_unknown',
    detail: `The service was restored from a backup of ${taken}: what became of this job is not known.`,
    hint: 'Check on the host, then decide.',
  });
  const ended = await sql`
    update jobs set state = 'failed', error = ${error}::jsonb, finished = now(), lease_token = null,
      lease_expires = null, run_removed = true, version = version + 1
    where finished is null and kind not in ('parse', 'view')`;
  await sql`
    update jobs set lease_token = null, lease_expires = null, dispatched = null, version = version + 1
    where finished is null`;
  await sql`
    update sessions set ended = coalesce(ended, now()), sealed = null, answers = null, holder = null,
      challenge_expires = null
    where ended is null or sealed is not null`;
  await sql`update webhooks set taken_by = null, taken_until = null where taken_by is not null`;
  return ended.count;
}
