import { CommandError } from '../../command-error.ts';
import { printDone, printRecords } from '../../output/print-records.ts';
import { formatAge } from '../../output/table.ts';
import { connect } from '../connect.ts';
import { doEach } from '../do-each.ts';
import { listSessions } from '../find-session.ts';

/** `windlass sessions`: the user's logins on hosts. */
export async function showSessions({ json }: { json?: boolean }): Promise<void> {
  const windlass = await connect();
  await printRecords(await listSessions(windlass), {
    columns: {
      ID: ({ sid }) => sid,
      STATE: ({ state }) => state,
      HOST: ({ hostname }) => hostname,
      USER: ({ username }) => username,
      AGE: ({ created }) => formatAge(created),
      USED: ({ accessed }) => formatAge(accessed),
      EXPIRES: ({ expires }) => expires,
    },
    json,
  });
}

/** `windlass close`: ends sessions, and cancels their jobs. */
export async function closeSessions(sids: string[], { json }: { json?: boolean }): Promise<void> {
  const windlass = await connect();
  await doEach(sids, async sid => {
    const closed = await windlass.session(sid).close();
    await printDone({ sid, closed }, { json });
    if (!closed)
      throw new CommandError(`There is no session ${sid}.`, { hint: 'See: windlass sessions.' });
  });
}
