import { setTimeout as delay } from 'node:timers/promises';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { BackendWatch } from '../../shared/database/migrations/backend-watch.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

const given = withDatabase('migration-watch');

test('a look that outlasts the work it was for is the only one of its connection', async () => {
  const warnings: string[] = [];
  const note = ({ message }: Error) => warnings.push(message);
  process.on('warning', note);
  const watch = new BackendWatch({ url: given.url, say: () => {} });
  const holder = postgres(given.url, { max: 1 });
  onTestFinished(async () => {
    process.off('warning', note);
    await holder.end();
    await watch.close();
  });
  const about = { pid: 1, label: 'nothing', note: () => '' };
  // Opens its connection.
  await watch.during(() => delay(500), about);
  await holder.begin(async tx => {
    await tx`lock table pg_stat_progress_create_index`;
    // Each long enough for a look, of which the first waits for the lock. The driver warns of the third.
    for (let n = 0; n < 4; n++) await watch.during(() => delay(500), about);
  });
  expect(warnings).toEqual([]);
});
