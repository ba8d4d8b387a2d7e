import { verifyAudit } from '../../shared/audit/verify-audit.ts';
import { openDatabase } from '../../shared/database/connect.ts';
import { abortable } from '../../shared/process/abort.ts';
import { exitWith } from '../../shared/service/lifecycle.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { withDirectDatabase } from '../find-database.ts';
import { printRecord } from '../output/print-records.ts';
import type { CommandContext } from './command-context.ts';

/** What waits longer is not about to be chained. */
const MAX_PENDING_SECONDS = 60;

/** `windlass audit verify`: checks the chain of the audit. Ends with status 1 where an entry does not fit, or is not chained. */
export async function verifyAuditChain(
  { environment, life }: CommandContext,
  { json }: { json?: boolean },
): Promise<void> {
  const verdict = await withDirectDatabase(readConfig(environment), life.stopping, async url => {
    const database = openDatabase(url, { max: 1 });
    try {
      // Reading a chain of years takes long, and the database may wait for a lock.
      return await abortable(verifyAudit(database), life.stopping);
    } finally {
      await database.close();
    }
  });
  const { problem, entries, first, last, beforeHash, lastHash, pending, pendingSeconds } = verdict;
  if (json) await printRecord(verdict, { json });
  if (problem) exitWith(`The audit was changed. ${problem}`);
  if (pending > 0 && pendingSeconds > MAX_PENDING_SECONDS)
    exitWith(
      `${pending} entries are not chained, the oldest for ${Math.round(pendingSeconds)} s. Workers chain them within a second: look into their logs.`,
    );
  const range = entries > 0 ? `, ${first} to ${last}` : '';
  const whole = `The audit is whole: ${entries} entries${range}; ${pending} are not chained yet.`;
  const sentence = `${whole}\nBefore ${first}: ${beforeHash}\nOf ${last}: ${lastHash}`;
  if (!json) await printRecord(verdict, { sentence });
}
