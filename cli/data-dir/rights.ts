import { chmodSync, lstatSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { findPostgresUser } from '../../shared/process/system-users.ts';
import { isSharedFolder } from '../../shared/storage/shared-folder.ts';
import { CommandError } from '../command-error.ts';
import { choosePostgresUser } from '../embedded-postgres/postgres-user.ts';

/** What Windlass puts into its data directory, also under names of passage such as `postgres.init-…`. */
const OWN = /^(lock|objects|postgres|secrets\.json)(\.|$)/;
export const isOwnName = (name: string) => OWN.test(name);

/**
 * Takes from others what they may do with what Windlass keeps, and with the directory itself where nothing else is in it: it
 * may have been made before, or restored, with any mode. Whoever may write there could put other keys in the place of ours.
 */
export function closeToOthers(directory: string): void {
  const names = readdirSync(directory);
  for (const name of names.filter(isOwnName)) {
    const path = join(directory, name);
    // The objects may be shared with the API's account: see service-users.ts.
    restrict(path, name === 'objects' && isSharedFolder(path) ? 0o007 : 0o077);
  }
  // Its user must be able to enter: Postgres runs as another one where we are root.
  if (names.every(isOwnName)) restrict(directory, 0o066);
}

/**
 * Who owns the directory, or what is there under a name of Windlass, chooses its keys and its passwords and reads what is
 * stored. Root is everybody's master anyhow.
 */
export function requireOwn(directory: string): void {
  const own = process.geteuid?.();
  if (own === undefined) return;
  // Where others may write, they may have made the directory of the database, too: its owner says nothing.
  const isOpen = (statSync(directory).mode & 0o022) !== 0;
  const user = isOpen ? findPostgresUser() : choosePostgresUser(join(directory, 'postgres'));
  const postgres = own === 0 ? user?.uid : undefined;
  const require = (path: string, isPostgres = false) => {
    // A link, and what it leads to.
    for (const found of [lstatSync, statSync].map(look => look(path, { throwIfNoEntry: false }))) {
      if (!found || found.uid === own || found.uid === 0) continue;
      if (isPostgres && found.uid === postgres) continue;
      throw new CommandError(
        `${path} belongs to another user (${found.uid}), who could put other keys in the place of this service's.`,
        { hint: 'Start the service as that user, or use another DATA_DIR.' },
      );
    }
  };
  require(directory);
  for (const name of readdirSync(directory).filter(isOwnName))
    require(join(directory, name), name.startsWith('postgres'));
  const objects = join(directory, 'objects');
  if (!statSync(objects, { throwIfNoEntry: false })?.isDirectory()) return;
  for (const name of ['objects', 'incoming']) require(join(objects, name));
}

/** Where other things are in it its mode stays, and then nobody else may replace what is in it. */
export function requireClosed(directory: string): void {
  if (readdirSync(directory).every(isOwnName)) return;
  const { gid, mode } = statSync(directory);
  if ((mode & 0o1000) !== 0) return;
  // The user's own group is often the user's alone.
  const groups = [process.getegid?.(), ...(process.getgroups?.() ?? [])];
  const isOfGroup = (mode & 0o020) !== 0 && !groups.includes(gid);
  if (!isOfGroup && (mode & 0o002) === 0) return;
  const who = mode & 0o002 ? 'Every user' : `The group ${gid}`;
  throw new CommandError(`${who} may write to ${directory}, where other things are, too.`, {
    hint: `Use a DATA_DIR of its own, or run: chmod go-w '${directory}'`,
  });
}

function restrict(path: string, taken: number): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found || found.isSymbolicLink() || (found.mode & taken) === 0) return;
  // Somebody else's to change, such as a volume that root made for this user.
  if (process.geteuid?.() !== 0 && found.uid !== process.geteuid?.()) return;
  chmodSync(path, found.mode & 0o7777 & ~taken);
}
