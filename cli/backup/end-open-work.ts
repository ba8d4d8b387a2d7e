import type pg from 'pg';

/**
 * Ends what was open when a backup was taken: jobs that reach a host may have ended since and must not run again, and
 * sessions would log in anew. Jobs on stored bytes alone go on. Returns how many jobs ended.
 */
export async function endOpenWork(client: pg.Client, taken: string): Promise<number> {
  const error = JSON.stringify({
    code: 'outcome_unknown',
    detail: `The service was restored from a backup of ${taken}: what became of this job is not known.`,
    hint: 'Check on the host, then decide.',
  });
  const { rowCount } = await client.query(
    `update jobs set state = 'failed', error = $1::jsonb, finished = now(), lease_token = null,
      run_removed = true, version = version + 1
    where finished is null and kind not in ('parse', 'view')`,
    [error],
  );
  await client.query(`
    update jobs set lease_token = null, dispatched = null, version = version + 1
    where finished is null`);
  await client.query(`
    update sessions set ended = coalesce(ended, now()), sealed = null, answers = null, holder = null,
      challenge_expires = null
    where ended is null or sealed is not null`);
  await client.query(
    'update webhooks set taken_by = null, taken_until = null where taken_by is not null',
  );
  return rowCount ?? 0;
}
