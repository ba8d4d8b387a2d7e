import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readSystemUsers, type SystemUser } from '../../shared/process/system-users.ts';
import { CommandError } from '../command-error.ts';

/** The largest number of a user or group that a process can be started with. */
const MAX_ID = 2 ** 31 - 1;

/** The accounts that are taken without these settings, if there are such accounts. */
export const ACCOUNTS = { API_USER: 'windlass-api', WORKER_USER: 'windlass-worker' };
/** Else the user and the group of these numbers, of a range that systemd's list of users and groups gives to nobody. */
const NAMELESS = { API_USER: 1_900_000_184, WORKER_USER: 1_900_000_185 };

/** Whom some of the programs run as where root starts them. */
export interface OwnAccount extends SystemUser {
  /** The setting that names it. */
  setting: keyof typeof ACCOUNTS;
  /** Nobody has asked for it: where it cannot be, that is no error. */
  isDefault?: boolean;
}

/** Undefined where the setting is `root`. Throws CommandError for a setting that names no account. */
export function findOwnAccount(
  setting: OwnAccount['setting'],
  given: string | undefined,
): OwnAccount | undefined {
  if (given === 'root') return undefined;
  const user = findAccount(given ?? ACCOUNTS[setting]);
  if (user && user.uid !== 0) return { ...user, setting };
  if (given === undefined) {
    const id = NAMELESS[setting];
    return { name: `${id}:${id}`, uid: id, gid: id, setting, isDefault: true };
  }
  throw new CommandError(`${setting}: ${given} is no account of this machine other than root.`, {
    hint: 'Name one, or give UID:GID, or `root`.',
  });
}

function findAccount(given: string): SystemUser | undefined {
  const [, uid, gid] = /^(\d+):(\d+)$/.exec(given) ?? [];
  if (uid && gid) {
    const user = { name: given, uid: Number(uid), gid: Number(gid) };
    return Math.max(user.uid, user.gid) > MAX_ID ? undefined : user;
  }
  return readSystemUsers().find(({ name }) => name === given);
}

/** A process may inspect others of its user, and the group that shares the objects may read and remove them. */
export function requireOwnUser(
  { setting, name, uid, gid }: OwnAccount,
  others: readonly (SystemUser | undefined)[],
): void {
  const hint = `Add an account for it alone: useradd --system --user-group ${ACCOUNTS[setting]}`;
  if (others.some(other => other?.uid === uid))
    throw new CommandError(`${setting}: the database or the decoders run as ${name}, too.`, {
      hint,
    });
  if (gid === 0 || others.some(other => other?.gid === gid))
    throw new CommandError(
      `${setting}: the group of ${name}, ${gid}, is that of root, the database or the decoders.`,
      { hint },
    );
}

export function requirePort({ setting, name }: OwnAccount, port: number): void {
  if (port >= readFirstOpenPort()) return;
  throw new CommandError(`${setting}: ${name} may not listen on port ${port}.`, {
    hint: 'Set PORT to one from 1024 on, and put a proxy before it.',
  });
}

function readFirstOpenPort(): number {
  try {
    return Number(readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8'));
  } catch {
    return 1024;
  }
}

/**
 * Throws CommandError where the account may not use a path in the ways of these letters of `test`. The kernel decides, because
 * it also knows access control lists.
 */
export function requireReach(
  { setting, name, uid, gid }: OwnAccount,
  path: string,
  letters: string,
): void {
  const check = [...letters].map(letter => `test -${letter} "$1"`).join(' && ');
  const options = { uid, gid, cwd: '/', env: {}, stdio: 'ignore' } as const;
  const { status, error } = spawnSync('/bin/sh', ['-c', check, 'sh', path], options);
  if (status === 0) return;
  throw new CommandError(`${setting}: ${name} cannot use ${path}.`, {
    hint: 'Put node, Windlass, DATA_DIR and TMPDIR where that account can enter, such as below /opt and /var/lib/windlass.',
    cause: error,
  });
}
