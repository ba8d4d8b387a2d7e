import { existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MARKER } from '../../shared/installation/store-marker.ts';
import { findBundledFfmpeg } from '../../shared/process/bundled-ffmpeg.ts';
import { packageRoot } from '../../shared/process/package-root.ts';
import { findDecoderUser, type SystemUser } from '../../shared/process/system-users.ts';
import type { Config } from '../../shared/settings/config.ts';
import { isSharedFolder } from '../../shared/storage/shared-folder.ts';
import { CommandError } from '../command-error.ts';
import { choosePostgresUser } from '../embedded-postgres/postgres-user.ts';
import type { UserNamespace } from '../supervisor/user-namespace.ts';
import {
  findOwnAccount,
  type OwnAccount,
  requireOwnUser,
  requirePort,
  requireReach,
} from './own-account.ts';
import { shareObjects } from './share-objects.ts';
import { tryNamespace } from './try-namespace.ts';

/** Whom API and workers run as, if not as the user who started them. */
interface ServiceUsers {
  api?: OwnAccount | undefined;
  worker?: UserNamespace | undefined;
}

/** Throws CommandError for a setting that names no account, or that cannot be followed here: before anything is made. */
export function requireServiceUsers(config: Config): void {
  if (!mayChooseUsers()) refuseSettings(config);
  else {
    findOwnAccount('API_USER', config.API_USER);
    findOwnAccount('WORKER_USER', config.WORKER_USER);
  }
}

/**
 * The accounts of API and workers where root starts the embedded form (decision 54): neither reads the other's memory
 * or files, and they share the objects. Throws CommandError. `print` gets a warning where workers run as root all the
 * same.
 */
export async function prepareServiceUsers(
  config: Config,
  dataDir: string,
  print: (line: string) => void,
): Promise<ServiceUsers> {
  requireServiceUsers(config);
  if (!mayChooseUsers()) return {};
  const start: Start = {
    config,
    dataDir,
    print,
    others: listOtherUsers(config, dataDir),
    objects: config.S3_ENDPOINT ? undefined : join(dataDir, 'objects'),
  };
  const api = chooseApiAccount(start);
  const account = chooseWorkerAccount(start, api);
  const worker = account && (await prepareNamespace(account, api?.gid, print));
  const mayStayRoot = [api, account].every(one => !one || one.isDefault);
  return shareOrStayRoot(start, { api, worker }, mayStayRoot);
}

/** What accounts are chosen by. */
interface Start {
  config: Config;
  dataDir: string;
  /** The folder of the objects, where they are files. */
  objects: string | undefined;
  /** Users of the database and of the decoders, who must be others. */
  others: readonly (SystemUser | undefined)[];
  print(line: string): void;
}

function listOtherUsers(config: Config, dataDir: string): Start['others'] {
  const database = config.DATABASE_URL ? undefined : choosePostgresUser(join(dataDir, 'postgres'));
  const decoder = findDecoderUser();
  if (database && decoder?.uid === database.uid) throw isDecoder(database.name);
  return [database, decoder];
}

function chooseApiAccount({ config, dataDir, objects, others, print }: Start) {
  const account = findOwnAccount('API_USER', config.API_USER);
  const check = (account: OwnAccount) => {
    refuseObjectsOfRoot(account, objects);
    requireOwnUser(account, others);
    requirePort(account, config.PORT);
    requirePrograms(account, 'dist/api/main.js', dataDir);
  };
  return account && chooseIfItCan(account, check, print);
}

function chooseWorkerAccount(
  { config, dataDir, objects, others, print }: Start,
  api: OwnAccount | undefined,
) {
  const account = findOwnAccount('WORKER_USER', config.WORKER_USER);
  const check = (account: OwnAccount) => {
    refuseObjectsOfRoot(account, objects);
    requireOwnUser(account, others);
    if (account.uid === api?.uid)
      throw new CommandError(`WORKER_USER: the API runs as ${account.name}, too.`, {
        hint: 'Set WORKER_USER to another user.',
      });
    requirePrograms(account, 'dist/workers/main.js', dataDir);
    requireReach(account, tmpdir(), 'wx');
  };
  return account && chooseIfItCan(account, check, print);
}

/** Lets both have the objects. Some file systems keep no groups: root goes on there, where nobody asked for accounts. */
async function shareOrStayRoot(
  { objects, print }: Start,
  users: ServiceUsers,
  mayStayRoot: boolean,
): Promise<ServiceUsers> {
  const group = users.api?.gid ?? users.worker?.gid;
  if (group === undefined || objects === undefined) return users;
  try {
    await shareObjects(objects, group);
    return users;
  } catch (error) {
    // Nothing is stored there yet.
    if (!mayStayRoot) throw error;
    print(`The API and the workers run as root: ${(error as Error).message}`);
    return {};
  }
}

/**
 * The decoders' account must not own the database: a hole in a decoder would open it. Its data may belong to a user
 * that new data would not get.
 */
const isDecoder = (name: string) =>
  new CommandError(
    `The embedded Postgres and the file decoders would run as the same user, ${name}.`,
    { hint: 'Add a user for the decoders: useradd --system --user-group windlass-decoder' },
  );

/**
 * What root alone has stored stays root's until somebody asks for accounts: to give it to a group may take long, and may not be
 * possible where it is.
 */
function refuseObjectsOfRoot(
  { isDefault, setting, name }: OwnAccount,
  objects: string | undefined,
) {
  if (!isDefault || !objects || isSharedFolder(objects)) return;
  const stored = join(objects, 'objects');
  if (!existsSync(stored) || readdirSync(stored).every(name => name === MARKER)) return;
  throw new CommandError('the stored objects belong to root.', {
    hint: `Set ${setting}=${name} to hand them over, or ${setting}=root to go on as root.`,
  });
}

/** Undefined, and a line says why, where nobody has asked for the account and it cannot be used. */
function chooseIfItCan(
  account: OwnAccount,
  check: (account: OwnAccount) => void,
  print: (line: string) => void,
): OwnAccount | undefined {
  try {
    check(account);
    return account;
  } catch (error) {
    if (!account.isDefault || !(error instanceof CommandError)) throw error;
    const who = account.setting === 'API_USER' ? 'The API runs' : 'The workers run';
    print(`${who} as root: ${error.message} ${error.hint ?? ''}`.trim());
    return undefined;
  }
}

/** The objects are shared by what Linux alone has: see beneath.ts. */
const mayChooseUsers = () => process.geteuid?.() === 0 && process.platform === 'linux';

function refuseSettings({ API_USER, WORKER_USER }: Config): void {
  for (const [setting, given] of Object.entries({ API_USER, WORKER_USER }))
    if (given !== undefined)
      throw new CommandError(`${setting}: only root on Linux can run programs as another user.`, {
        hint: `Start as root, or remove ${setting}.`,
      });
}

function requirePrograms(account: OwnAccount, main: string, dataDir: string): void {
  requireReach(account, process.execPath, 'x');
  requireReach(account, fileURLToPath(new URL(main, packageRoot)), 'r');
  requireReach(account, dataDir, 'x');
}

/** Undefined where this system does not let a worker have a namespace: without one nothing would confine decoders. */
async function prepareNamespace(
  account: OwnAccount,
  group: number | undefined,
  print: (line: string) => void,
): Promise<UserNamespace | undefined> {
  const namespace = { uid: account.uid, gid: account.gid, group };
  const problem = await tryNamespace(namespace);
  if (problem !== undefined) {
    print(`The workers run as root, not as ${account.name}: ${problem}`);
    return undefined;
  }
  // The workers may not make it executable.
  await findBundledFfmpeg();
  return namespace;
}
