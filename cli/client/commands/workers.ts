import { unwrap } from '../../../clients/typescript/src/api.ts';
import { printDone, printRecords } from '../../output/print-records.ts';
import { formatAge } from '../../output/table.ts';
import { connect, connectByPassword, type PasswordOptions } from '../connect.ts';

/** `windlass worker list` */
export async function listWorkers({ json }: { json?: boolean }): Promise<void> {
  const { api } = await connect();
  const { items } = await unwrap(api.GET('/api/workers'));
  await printRecords(items, {
    columns: {
      ID: ({ id }) => id,
      HOST: ({ host }) => host,
      STATE: ({ draining }) => (draining ? 'draining' : 'working'),
      RUNNING: ({ running }) => String(running),
      UP: ({ started }) => formatAge(started),
      SEEN: ({ seen }) => formatAge(seen),
      KINDS: ({ kinds }) => kinds.join(' '),
    },
    json,
  });
}

/** `windlass worker drain` and `resume` */
export async function setDraining(
  id: string,
  draining: boolean,
  options: PasswordOptions & { json?: boolean },
): Promise<void> {
  const { api } = await connectByPassword(options);
  const params = { path: { id } };
  const worker = await unwrap(api.PUT('/api/workers/{id}', { params, body: { draining } }));
  await printDone(worker, options);
}
