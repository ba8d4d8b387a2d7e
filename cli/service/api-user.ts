import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../shared/process/package-root.ts';
import {
  findDecoderUser,
  readSystemUsers,
  type SystemUser,
} from '../../shared/process/system-users.ts';
import type { Config } from '../../shared/settings/config.ts';
import { CommandError } from '../command-error.ts';
import { chooseServiceUser } from '../embedded-postgres/service-user.ts';
import { shareObjects } from './share-objects.ts';

/** Whom the API runs as where nothing else is said, if there is such an account. */
const ACCOUNT = 'windlass-api';
/** The largest number of a user or group that a process can be started with. */
const MAX_ID = 2 ** 31 - 1;

/**
 * The account that the API runs as, where root starts the embedded form: it reads neither the memory nor the files of the
 * workers, and they share the objects. Undefined where all run as the user who started them. Throws CommandError.
 */
export async function prepareApiUser(
  config: Config,
  dataDir: string,
): Promise<SystemUser | undefined> {
  const { API_USER: given } = config;
  // The objects are shared by what Linux alone has: see beneath.ts.
  const mayChange = process.geteuid?.() === 0 && process.platform === 'linux';
  if (!mayChange && given === undefined) return undefined;
  if (!mayChange)
    throw new CommandError('API_USER: only root on Linux can run the API as another user.');
  const user = findAccount(given ?? ACCOUNT);
  if (!user && given === undefined) return undefined;
  if (!user || user.uid === 0)
    throw new CommandError(`API_USER: ${given} is no account of this machine other than root.`, {
      hint: 'Name one, or give UID:GID.',
    });
  requireOwnUser(user, dataDir);
  requirePort(user, config.PORT);
  requireReach(user, dataDir);
  if (!config.S3_ENDPOINT) await shareObjects(join(dataDir, 'objects'), user.gid);
  return user;
}

function findAccount(given: string): SystemUser | undefined {
  const [, uid, gid] = /^(\d+):(\d+)$/.exec(given) ?? [];
  if (uid && gid) {
    const user = { name: given, uid: Number(uid), gid: Number(gid) };
    return Math.max(user.uid, user.gid) > MAX_ID ? undefined : user;
  }
  return readSystemUsers().find(({ name }) => name === given);
}

/** A process may look into others of its user, and the group that shares the objects may read and remove them. */
function requireOwnUser({ name, uid, gid }: SystemUser, dataDir: string): void {
  const others = [chooseServiceUser(join(dataDir, 'postgres')), findDecoderUser()];
  const hint = 'Add an account for the API alone: useradd --system --user-group windlass-api';
  if (others.some(other => other?.uid === uid))
    throw new CommandError(`API_USER: the database or the decoders run as ${name}, too.`, { hint });
  if (gid === 0 || others.some(other => other?.gid === gid))
    throw new CommandError(
      `API_USER: the group of ${name}, ${gid}, is that of root, the database or the decoders.`,
      { hint },
    );
}

function requirePort({ name }: SystemUser, port: number): void {
  if (port >= readFirstOpenPort()) return;
  throw new CommandError(`API_USER: ${name} may not listen on port ${port}.`, {
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

/** The kernel decides, because it also knows access control lists. */
function requireReach({ name, uid, gid }: SystemUser, dataDir: string): void {
  const program = fileURLToPath(new URL('dist/api/main.js', packageRoot));
  const check = 'test -x "$1" || exit 1; test -r "$2" || exit 2; test -x "$3" || exit 3';
  const { status, error } = spawnSync(
    '/bin/sh',
    ['-c', check, 'sh', process.execPath, program, dataDir],
    { uid, gid, cwd: '/', env: {}, stdio: 'ignore' },
  );
  if (status === 0) return;
  const what = [process.execPath, program, dataDir][(status ?? 1) - 1];
  throw new CommandError(`API_USER: ${name} cannot use ${what}.`, {
    hint: 'Put node, Windlass and DATA_DIR where that account can enter, such as below /opt and /var/lib/windlass.',
    cause: error,
  });
}
