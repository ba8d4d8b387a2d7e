import { WindlassError } from '../../shared/errors/errors.ts';
import type { Handler } from '../context.ts';
import { type DirectoryEntry, listDirectory } from '../remote-files/list-directory.ts';
import { withSession } from '../ssh/reconnect.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';

/** Entries of one commit: a commit per answer of the host would cost more than the answer. */
const GROUP = 1_000;
/** But an entry waits no longer than this for its commit while others come. */
const GROUP_MS = 100;

/**
 * Lists a directory in the host's order. A group of entries is four lines, JSON arrays of names, sizes, types and
 * times, so that the API assembles the columns of its answer without parsing them.
 */
const browse: Handler<'browse'> = async context => {
  const { payload, signal } = context;
  const output = await context.output();
  // The host may list in another order this time, so a listing cannot be continued.
  if (output.stored.stdout > 0) {
    throw new WindlassError('remote_connection_failed', {
      detail: 'The listing was cut off.',
      hint: 'Ask again.',
    });
  }
  const { LIMIT_OUTPUT_BYTES: most } = context.worker.config;
  let entries = 0;
  let bytes = 0;
  const list = async (session: RemoteSession) => {
    let group: DirectoryEntry[] = [];
    let stored = Number.NEGATIVE_INFINITY;
    const store = async () => {
      const text = writeGroup(group);
      bytes += text.length;
      // A host may list for ever.
      if (most > 0 && bytes > most) throw listingTooLarge(payload.path, most);
      await output.append('stdout', text);
      entries += group.length;
      group = [];
      stored = performance.now();
    };
    for await (const batch of listDirectory(session, payload.path, signal)) {
      group.push(...batch);
      const isDue = group.length >= GROUP || performance.now() - stored >= GROUP_MS;
      if (isDue && group.length > 0) await store();
    }
    if (group.length > 0) await store();
  };
  await withSession(context, list, { reconnect: false });
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

const listingTooLarge = (path: string, bytes: number) =>
  new WindlassError('output_limit', {
    detail: `the listing of ${path} is larger than ${bytes} bytes.`,
    hint: 'List it with a command that writes to a file on the host. LIMIT_OUTPUT_BYTES sets the limit.',
  });
