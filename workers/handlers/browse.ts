import { WindlassError } from '../../shared/errors.ts';
import type { Handler } from '../context.ts';
import { type DirectoryEntry, listDirectory } from '../remote-files/list-directory.ts';

/** Entries that are stored together: a commit for each answer of a host costs more than the answer does. */
const GROUP = 1_000;
/** But the client waits for none longer than this while others come. */
const GROUP_MS = 100;

/**
 * Lists a directory, as the host gives it: four lines for each group of entries, JSON arrays of their names, sizes, types
 * and times, so that the columns of the answer are put together without being read again one by one.
 */
const browse: Handler<'browse'> = async context => {
  const { worker, job, payload, over } = context;
  const output = await context.output();
  // The host need not list in the same order twice: what came before cannot be gone on with.
  if (output.stored.stdout > 0) {
    throw new WindlassError('remote_connection_failed', {
      detail: 'The listing was cut off.',
      hint: 'Ask again.',
    });
  }
  let entries = 0;
  await worker.sessions.use(job.session ?? '', over, async session => {
    let group: DirectoryEntry[] = [];
    let stored = Number.NEGATIVE_INFINITY;
    const store = async () => {
      await output.append('stdout', writeGroup(group));
      entries += group.length;
      group = [];
      stored = performance.now();
    };
    for await (const batch of listDirectory(session, payload.path, over)) {
      group.push(...batch);
      if (group.length >= GROUP || performance.now() - stored >= GROUP_MS) await store();
    }
    if (group.length > 0) await store();
  });
  await output.flush();
  return { result: { entries } };
};

export default browse;

function writeGroup(entries: DirectoryEntry[]): Buffer {
  const columns = [
    entries.map(entry => entry.name),
    entries.map(entry => entry.size),
    entries.map(entry => entry.type),
    entries.map(entry => entry.modified.toISOString()),
  ];
  return Buffer.from(columns.map(column => `${JSON.stringify(column)}\n`).join(''));
}
