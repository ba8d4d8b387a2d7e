import { and, count, eq } from 'drizzle-orm';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import { sessions } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { newId } from '../../shared/ids.ts';
import type { JobSummary } from '../../shared/jobs/job-record.ts';
import { type Credential, seal } from '../../shared/secrets/secrets.ts';
import { destinationDigest, hostChanged } from '../../shared/ssh/destination.ts';
import { type Hops, hostOf, readHopsTo } from '../../shared/ssh/hops.ts';
import { assertHostFor } from '../../shared/ssh/host-access.ts';
import type { ApiContext } from '../context.ts';
import type { Exchange } from '../http/exchange.ts';
import { clientAddress } from '../identity/client-address.ts';
import { currentUser } from '../identity/current-user.ts';
import { identifyAfterWait } from '../identity/identify-sender.ts';
import { lockUnchangedUser } from '../identity/lock-user.ts';
import { awaitJob } from '../jobs/requests/await-job.ts';
import { jobName } from '../jobs/requests/job-name.ts';
import { requireWorker } from '../jobs/requests/require-worker.ts';
import { startRequestedJob } from '../jobs/requests/start-requested-job.ts';
import {
  checkCredential,
  checkJumps,
  loginFields,
  loginName,
  readCredential,
} from './credential.ts';
import { checkStartup, sealEnv, sessionOptions, startupOf } from './session-env.ts';
import { isActiveOrOpening } from './sessions.ts';
import type { ThreadedKeyParser } from './threaded-key-parser.ts';

export const newSession = z
  .strictObject({
    hostname: z.string().min(1).max(253),
    username: loginName,
    ...loginFields,
    port: z.number().int().min(1).max(65_535).optional(),
    /** Null: not given, as clients of Slycat say it. */
    agent: z.boolean().nullish(),
    ...sessionOptions,
    name: jobName,
  })
  .superRefine(checkCredential)
  .meta({ id: 'NewSession' });
type NewSession = z.output<typeof newSession>;

/** Starts the job that logs in. Its end is returned, or undefined where the answer is on its way. */
export async function openSession(
  api: ApiContext,
  { req, res }: Exchange,
  keys: ThreadedKeyParser,
  given: NewSession,
): Promise<JobSummary | undefined> {
  const owner = currentUser(res).username;
  const credential = await readCredential(keys, { owner, given });
  await identifyAfterWait(api, { req, res });
  const hops = await findHost(api, given, owner);
  checkJumps(given, hops);
  await requireWorker(api, 'connect');
  const session = await sealSession(api, { owner, given, hops, credential });
  const { sid, hostname } = session;
  const destination = destinationDigest(hops);
  const start = () =>
    startRequestedJob(api, { req, res }, async tx => {
      await lockUnchangedUser(tx, currentUser(res));
      await lockHost(tx, { name: hostname, destination, owner });
      await refuseTooMany(api, tx, owner);
      await tx.insert(sessions).values(session);
      const label = `${given.username}@${hostname}`;
      const payload = { address: clientAddress(req) };
      return { kind: 'connect', payload, session: sid, label, name: given.name };
    });
  return awaitJob(api, res, start);
}

/** The row of a session. Only workers can open what it seals, and for this destination alone. */
async function sealSession(
  { config }: ApiContext,
  asked: { owner: string; given: NewSession; hops: Hops; credential: Credential },
): Promise<typeof sessions.$inferInsert> {
  const { owner, given, hops } = asked;
  const host = hostOf(hops);
  const context = { sid: newId(), owner, hostname: host.name };
  const key = config.SEAL_PUBLIC_KEY;
  const destination = destinationDigest(hops);
  const sealed = await seal(key, context, { destination, secret: asked.credential });
  const agent = given.agent ?? host.agent;
  checkStartup(given, agent);
  const env = await sealEnv(key, context, given);
  const startup = startupOf(given, agent);
  return { ...context, username: given.username, agent, startup, sealed, ...env };
}

async function findHost(
  { database: { db } }: ApiContext,
  given: NewSession,
  owner: string,
): Promise<Hops> {
  const hops = await readHopsTo(db, given.hostname);
  if (!hops) throw unknownHost(given.hostname);
  const host = hostOf(hops);
  // Nothing is told of it to others.
  assertHostFor(host, { username: owner });
  if (given.port !== undefined && given.port !== host.port) {
    throw new WindlassError('host_not_allowed', {
      detail: `${host.name} is set up for port ${host.port}.`,
      hint: 'Leave the port out.',
    });
  }
  if (given.agent === true && !host.agent) {
    throw new WindlassError('missing_agent', {
      detail: `Missing agent configuration. ${host.name} is not set up for an agent.`,
      hint: 'Leave "agent" out, or have a server administrator set "agent": true in the host\'s entry.',
    });
  }
  return hops;
}

/**
 * A concurrent change or removal of the host, or of a jump host, must either find the session that is being opened, or
 * have come before it.
 */
async function lockHost(
  tx: Tx,
  { name, destination, owner }: { name: string; destination: string; owner: string },
): Promise<void> {
  const hops = await readHopsTo(tx, name, 'share');
  if (!hops) throw unknownHost(name);
  if (destinationDigest(hops) !== destination) throw hostChanged(name);
  assertHostFor(hostOf(hops), { username: owner });
}

const unknownHost = (name: string) =>
  new WindlassError('host_not_allowed', {
    detail: `${name} is not a host of this service.`,
    hint: 'GET /api/hosts lists the hosts; a server administrator adds one with POST /api/hosts.',
  });

async function refuseTooMany({ config }: ApiContext, tx: Tx, owner: string): Promise<void> {
  const limit = config.LIMIT_SESSIONS;
  if (limit === 0) return;
  const [open] = await tx
    .select({ n: count() })
    .from(sessions)
    .where(and(eq(sessions.owner, owner), isActiveOrOpening(tx, config.SESSION_IDLE_TIMEOUT)));
  if ((open?.n ?? 0) < limit) return;
  throw new WindlassError('too_many_requests', {
    detail: `You have ${limit} open sessions, which is the limit.`,
    hint: 'End some with DELETE /api/remotes/(sid). LIMIT_SESSIONS sets the limit.',
    headers: { 'Retry-After': '60' },
  });
}
