import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { ADVISORY_LOCKS } from '../../shared/database/advisory-locks.ts';
import { type Database, openDatabase } from '../../shared/database/connect.ts';
import { workers } from '../../shared/database/schema.ts';
import { opensCredentials, QUEUES_OF, WORKER_TYPES } from '../../shared/jobs/catalog.ts';
import { IS_ALIVE } from '../../shared/jobs/lease.ts';
import { type Resealed, resealSessions } from '../../shared/secrets/reseal-sessions.ts';
import { resealWebhooks } from '../../shared/secrets/reseal-webhooks.ts';
import { generateSealKeys, keyIds, publicKeyOf } from '../../shared/secrets/secrets.ts';
import { type Config, readConfig } from '../../shared/settings/config.ts';
import { auditCommand } from '../audit-command.ts';
import { CommandError } from '../command-error.ts';
import { findDataDir } from '../data-dir/find-data-dir.ts';
import { withDirectDatabase } from '../find-database.ts';
import { readSecrets, type StoredSecrets, writeSecrets } from '../generated-secrets.ts';
import { countOf } from '../output/count-of.ts';
import { printNotice } from '../output/print-notice.ts';
import { printRecord } from '../output/print-records.ts';
import type { CommandContext } from './command-context.ts';

/** A supervisor looks at its keys once a second, and a worker tells of its own every 3 s. */
const WORKERS_HAVE_IT_MS = 60_000;
const LOOK_MS = 500;
/** A wait that lasts longer is told of. */
const QUIET_MS = 5_000;

/** `windlass keys rotate`: seals the credentials of open sessions with a new key, while the service runs. */
export async function rotateKeys(
  { environment, life }: CommandContext,
  { json }: { json?: boolean },
): Promise<void> {
  const config = readConfig(environment);
  const given = config.SEAL_PRIVATE_KEYS;
  const { next, ...rotated } = await withDirectDatabase(config, life.stopping, async url => {
    const database = openDatabase(url, { max: 1 });
    try {
      await requireAlone(database);
      return given
        ? await useGivenKeys(database, given, life.stopping)
        : await rotateStoredKeys(database, config, life.stopping);
    } finally {
      await database.close();
    }
  });
  await printRecord(rotated, {
    sentence: [...describeRotation(rotated), ...next].join('\n'),
    json,
  });
}

interface Rotated extends Resealed {
  /** The id of the key that all are sealed with. */
  key: string | undefined;
  publicKey: string;
  webhooks: number;
  /** What a person does, or knows, after that. */
  next: string[];
}

/**
 * Rotates the keys of `secrets.json`: all processes learn the new ones before anything is sealed with them (decision
 * 43). A crash loses no key in use: the repeated command continues with the keys that it made.
 */
async function rotateStoredKeys(
  database: Database,
  config: Config,
  signal: AbortSignal,
): Promise<Rotated> {
  const dataDir = findDataDir(
    config,
    'Set SEAL_PRIVATE_KEYS to the keys of the fleet, or DATA_DIR to the folder of the service.',
  );
  const old = await readSecrets(dataDir);
  if (!old)
    throw new CommandError(`There are no keys in ${dataDir}.`, {
      hint: 'Set DATA_DIR to the folder of the service, or SEAL_PRIVATE_KEYS to the keys of the fleet.',
    });
  const { all, SECRET_KEY } = pendingKeys(old) ?? (await makeKeys(old));
  const known = { ...old, SEAL_PRIVATE_KEYS: all, SECRET_KEY_BEFORE: SECRET_KEY };
  await writeSecrets(dataDir, known);
  await untilWorkersHave(database, all, signal);
  const used: StoredSecrets = {
    SECRET_KEY,
    SECRET_KEY_BEFORE: old.SECRET_KEY,
    SEAL_PUBLIC_KEY: publicKeyOf(all),
    SEAL_PRIVATE_KEYS: all,
  };
  await writeSecrets(dataDir, used);
  const rotated = await reseal(database, all);
  // The key before stays: an API may be sealing with it at this moment.
  const [current, ...others] = all.split(',');
  const before = others.filter(key => publicKeyOf(key) === old.SEAL_PUBLIC_KEY);
  await writeSecrets(dataDir, { ...used, SEAL_PRIVATE_KEYS: [current, ...before].join(',') });
  const next = [
    `The key before stays second until the next rotation, for sessions that were being opened. ${config.SECRET_KEY ? 'SECRET_KEY is a setting and stays: change it where it is set, with the one before as SECRET_KEY_BEFORE.' : 'SECRET_KEY is new, too.'}`,
    'Where the service runs on several machines, copy secrets.json to the others now.',
  ];
  return { ...rotated, next };
}

interface NextKeys {
  /** All private keys, the new one first. */
  all: string;
  SECRET_KEY: string;
}

async function makeKeys(old: StoredSecrets): Promise<NextKeys> {
  const { privateKey } = await generateSealKeys();
  return {
    all: `${privateKey},${old.SEAL_PRIVATE_KEYS}`,
    SECRET_KEY: randomBytes(32).toString('base64url'),
  };
}

/**
 * The new keys of a rotation that ended while workers lacked them: nothing is sealed with the first one yet. They may
 * have it by now, and all of them would have to be given another one.
 */
function pendingKeys(old: StoredSecrets): NextKeys | undefined {
  const { SEAL_PRIVATE_KEYS: all, SEAL_PUBLIC_KEY, SECRET_KEY_BEFORE: SECRET_KEY } = old;
  return publicKeyOf(all) !== SEAL_PUBLIC_KEY && SECRET_KEY ? { all, SECRET_KEY } : undefined;
}

/** The keys of a fleet, which its processes have in their environments: the first one is to be used. */
async function useGivenKeys(
  database: Database,
  keys: string,
  signal: AbortSignal,
): Promise<Rotated> {
  await untilWorkersHave(database, keys, signal);
  const rotated = await reseal(database, keys);
  const next = [
    'If every API has this SEAL_PUBLIC_KEY, remove the other keys from SEAL_PRIVATE_KEYS. Otherwise give it to them first, and run this again.',
    `SEAL_PUBLIC_KEY=${rotated.publicKey}`,
  ];
  return { ...rotated, next };
}

async function reseal(database: Database, keys: string) {
  await auditCommand(database.direct, 'keys.rotate', keyIds(keys)?.[0] ?? '');
  const sessions = await resealSessions(database, keys);
  const webhooks = await resealWebhooks(database, keys);
  const publicKey = publicKeyOf(keys);
  return { key: keyIds(keys)?.[0], publicKey, ...sessions, webhooks };
}

function describeRotation({
  resealed,
  unreadable,
  key,
  webhooks,
}: Omit<Rotated, 'next'>): string[] {
  const left = unreadable > 0 ? ` ${unreadable} could not be opened, and were left.` : '';
  return [
    `The credentials of ${countOf(resealed, 'session')} were sealed with the new key, ${key}.${left}`,
    `So were the keys of ${countOf(webhooks, 'webhook')}.`,
  ];
}

async function requireAlone({ direct }: Database): Promise<void> {
  const [row] = await direct.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [
    ADVISORY_LOCKS.keyRotation,
  ]);
  if (!row?.taken)
    throw new CommandError('Another `windlass keys rotate` is at work on this database.', {
      hint: 'Wait for its end.',
    });
}

/** Waits until every live worker that opens credentials has the first of these keys. Throws CommandError. */
async function untilWorkersHave(
  database: Database,
  keys: string,
  signal: AbortSignal,
): Promise<void> {
  const [id = ''] = keyIds(keys) ?? [];
  const began = performance.now();
  const told = new Set<string>();
  for (;;) {
    const without = await listWorkersWithout(database, id);
    if (without.length === 0) return;
    const [first = ''] = without;
    const waited = performance.now() - began;
    if (waited > QUIET_MS && !told.has(first)) {
      told.add(first);
      printNotice(`Waiting for worker ${first}, which does not have the new key ${id} yet.`);
    }
    if (waited > WORKERS_HAVE_IT_MS)
      throw new CommandError(
        `Nothing was sealed anew: the worker ${first} does not have the new key ${id}.`,
        { hint: 'Give it to every remote and video worker, then run this again.' },
      );
    await delay(LOOK_MS, undefined, { signal });
  }
}

const OPENING_QUEUES = WORKER_TYPES.filter(opensCredentials).flatMap(type => QUEUES_OF[type]);

async function listWorkersWithout({ db }: Database, id: string): Promise<string[]> {
  const rows = await db
    .select({ id: workers.id, slots: workers.slots, keys: workers.sealKeys })
    .from(workers)
    .where(sql.raw(IS_ALIVE));
  return (
    rows
      // A stopping worker has no slots any more, and still ends what it has begun.
      .filter(
        ({ slots, keys }) => OPENING_QUEUES.some(queue => queue in slots) && !keys?.includes(id),
      )
      .map(worker => worker.id)
  );
}
