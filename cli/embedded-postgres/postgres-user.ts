import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import {
  findPostgresUser,
  readSystemUsers,
  type SystemUser,
} from '../../shared/process/system-users.ts';
import { CommandError, errnoOf } from '../command-error.ts';

/**
 * The account for Postgres, which refuses to run as root: the owner of its data, else `postgres` or `nobody`. The owner
 * comes first, as an account that was added later cannot read the data. Undefined if this process is not root. Throws
 * CommandError.
 */
export function choosePostgresUser(clusterDir: string): SystemUser | undefined {
  if (process.geteuid?.() !== 0) return undefined;
  const users = readSystemUsers();
  const owner = statSync(clusterDir, { throwIfNoEntry: false });
  if (owner && owner.uid !== 0) {
    const name = users.find(user => user.uid === owner.uid)?.name ?? `user ${owner.uid}`;
    return { name, uid: owner.uid, gid: owner.gid };
  }
  const user = findPostgresUser(users);
  if (user) return user;
  throw new CommandError(
    'The embedded Postgres does not run as root, and there is no user to run it.',
    { hint: 'Start Windlass as an ordinary user, add a user named postgres, or set DATABASE_URL.' },
  );
}

/** True if this user may enter the directory. The kernel decides, because it also knows access control lists. */
export function canEnter(user: SystemUser, directory: string): boolean {
  const { error, status } = spawnSync('/bin/sh', ['-c', 'test -x "$1"', 'sh', directory], {
    uid: user.uid,
    gid: user.gid,
    cwd: '/',
    env: {},
    stdio: 'ignore',
  });
  if (error) throw translateSwitchError(error, user);
  return status === 0;
}

/** An error for people, if this process may not become the user: the root of a container may lack that right. */
export function translateSwitchError(error: unknown, user: SystemUser | undefined): unknown {
  const code = errnoOf(error);
  if (!user || (code !== 'EPERM' && code !== 'EINVAL')) return error;
  return new CommandError(
    `The embedded Postgres does not run as root, and this root may not become ${user.name}.`,
    { hint: 'Start Windlass as an ordinary user, or set DATABASE_URL.', cause: error },
  );
}
