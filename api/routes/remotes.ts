import { and, count, eq } from 'drizzle-orm';
import type { Request, Response } from 'express';
import { z } from 'zod';
import { SESSION_COLUMNS } from '../../shared/database/api-columns.ts';
import type { Tx } from '../../shared/database/connect.ts';
import { sessions } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { newId } from '../../shared/ids.ts';
import { publishCancelled } from '../../shared/jobs/cancel.ts';
import { seal } from '../../shared/secrets/secrets.ts';
import { type Hops, hostOf, readHopsTo } from '../../shared/ssh/hops.ts';
import { assertHostFor } from '../../shared/ssh/host-access.ts';
import { destinationDigest, hostChanged } from '../../shared/ssh/host-place.ts';
import { isConnectionHeld } from '../../shared/ssh/session-holder.ts';
import type { ApiContext } from '../context.ts';
import { checkIfMatch, sendRecord } from '../http/conditional-requests.ts';
import { pageOf, pageQuery, readPage } from '../http/pagination.ts';
import { publicPath } from '../http/public-url.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { auditOf } from '../identity/audit.ts';
import { clientAddress } from '../identity/client-address.ts';
import { currentUser } from '../identity/current-user.ts';
import { identifyAfterWait } from '../identity/identify-sender.ts';
import { lockUnchangedUser } from '../identity/lock-user.ts';
import { awaitJob } from '../jobs/requests/await-job.ts';
import { jobName } from '../jobs/requests/job-name.ts';
import { requireWorker } from '../jobs/requests/require-worker.ts';
import { startRequestedJob } from '../jobs/requests/start-requested-job.ts';
import { operation } from '../openapi/operation.ts';
import {
  checkCredential,
  checkJumps,
  loginFields,
  loginName,
  readCredential,
} from '../remote/credential.ts';
import { LOGIN_ANSWERS, LOGIN_ERRORS, sendLogin } from '../remote/send-login.ts';
import { checkStartup, sealEnv, sessionOptions, startupOf } from '../remote/session-env.ts';
import { lastEnd, sessionRecord, tagOf, viewSession } from '../remote/session-view.ts';
import {
  endSession,
  findSession,
  isActive,
  isActiveOrOpening,
  lockSession,
  type SessionKey,
} from '../remote/sessions.ts';
import { ThreadedKeyParser } from '../remote/threaded-key-parser.ts';

const newSession = z
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

/** Remote sessions: opened here, ended by DELETE or by being idle. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;
  const keys = new ThreadedKeyParser();
  const keyOf = (req: Request, res: Response): SessionKey => ({
    sid: pathParameter(req, 'sid'),
    owner: currentUser(res).username,
    idleSeconds: api.config.SESSION_IDLE_TIMEOUT,
  });
  const findRecord = async (tx: Tx, req: Request, res: Response) => {
    const row = await findSession(tx, keyOf(req, res));
    const [more] = await tx
      .select({ lastEnd, isConnectionHeld })
      .from(sessions)
      .where(eq(sessions.sid, row.sid));
    return viewSession(api.config, row, {
      lastEnd: more?.lastEnd ?? null,
      isConnectionHeld: more?.isConnectionHeld ?? false,
    });
  };

  resource(router, '/remotes', {
    get: operation({
      id: 'listSessions',
      topic: 'sessions',
      summary: 'List your remote sessions',
      query: pageQuery,
      answers: {
        200: { means: 'A page of sessions.', json: pageOf('SessionPage', sessionRecord) },
      },
      handle: async ({ res, query }) => {
        const owner = currentUser(res).username;
        const where = and(eq(sessions.owner, owner), isActive(db, api.config.SESSION_IDLE_TIMEOUT));
        const rows = db
          .select({ session: SESSION_COLUMNS, lastEnd, isConnectionHeld })
          .from(sessions);
        const page = await readPage(rows, query(), { by: sessions.sid, key: 'sid', where }, row =>
          viewSession(api.config, row.session, row),
        );
        res.json(page);
      },
    }),
    post: operation({
      id: 'openSession',
      topic: 'sessions',
      summary: 'Open a remote session',
      details:
        'Logs in to the host; the credential is kept sealed and is never given out. Where the host asks for more, such as a one-time code, its questions are the answer.',
      body: newSession,
      headers: ['Idempotency-Key'],
      answers: LOGIN_ANSWERS,
      errors: [...LOGIN_ERRORS, 'missing_agent'],
      handle: async ({ req, res, body }) => {
        const owner = currentUser(res).username;
        const given = body();
        const credential = await readCredential(keys, { owner, given });
        await identifyAfterWait(api, req, res);
        const hops = await findHost(api, given, owner);
        const host = hostOf(hops);
        checkJumps(given, hops);
        const queue = await requireWorker(api, 'connect');
        const sid = newId();
        const place = destinationDigest(hops);
        const context = { sid, owner, hostname: host.name };
        const key = api.config.SEAL_PUBLIC_KEY;
        const sealed = await seal(key, context, { place, secret: credential });
        const agent = given.agent ?? host.agent;
        checkStartup(given, agent);
        const env = await sealEnv(key, context, given);
        const start = () =>
          startRequestedJob(api, req, res, async tx => {
            await lockUnchangedUser(tx, currentUser(res));
            await lockHost(tx, { name: host.name, place, owner });
            await refuseTooMany(api, tx, owner);
            await tx.insert(sessions).values({
              sid,
              owner,
              hostname: host.name,
              username: given.username,
              agent,
              startup: startupOf(given, agent),
              sealed,
              ...env,
            });
            const label = `${given.username}@${host.name}`;
            const payload = { address: clientAddress(req) };
            return { kind: 'connect', queue, payload, session: sid, label, name: given.name };
          });
        const ended = await awaitJob(api, res, start);
        if (ended) sendLogin(res, ended);
      },
    }),
  });

  resource(router, '/remotes/:sid', {
    get: operation({
      id: 'getSession',
      topic: 'sessions',
      summary: 'Look at a remote session',
      headers: ['If-None-Match'],
      answers: { 200: { means: 'The session.', json: sessionRecord }, 304: 'Unchanged.' },
      errors: ['session_not_found', 'host_changed'],
      handle: async ({ req, res }) => {
        const record = await findRecord(db, req, res);
        sendRecord(req, res, { tag: tagOf(record), record: () => record });
      },
    }),
    delete: operation({
      id: 'endSession',
      topic: 'sessions',
      summary: 'End a remote session',
      details: 'Its jobs are cancelled.',
      deprecated: true,
      headers: ['If-Match'],
      answers: {
        204: {
          means: 'Session deleted.',
          headers: {
            Deprecation: 'Since when it is deprecated (RFC 9745).',
            Link: 'Its documentation.',
          },
        },
      },
      errors: ['session_not_found', 'host_changed'],
      handle: async ({ req, res }) => {
        const key = keyOf(req, res);
        const cancelled = await db.transaction(async tx => {
          if (req.get('If-Match') !== undefined) {
            // Locked until it is ended: other uses of it come before this check, or too late.
            await lockSession(tx, key, 'update');
            checkIfMatch(req, tagOf(await findRecord(tx, req, res)));
          }
          const { jobs, wasOpen } = await endSession(tx, key);
          if (wasOpen) await auditOf(req, res)(tx, 'session.close', key.sid);
          return jobs;
        });
        publishCancelled(api, cancelled);
        api.notifications.publish('session', key.sid);
        // RFC 9745: the operation is deprecated since the epoch of this interface.
        res
          .set('Deprecation', '@1767225600')
          .set(
            'Link',
            `<${publicPath(api.config)}/api/docs#remotes>; rel="deprecation"; type="text/html"`,
          );
        res.statusMessage = 'Session deleted.';
        res.status(204).end();
      },
    }),
  });
});

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
      detail: `Host not allowed: ${host.name} is set up for port ${host.port}.`,
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
  { name, place, owner }: { name: string; place: string; owner: string },
): Promise<void> {
  const hops = await readHopsTo(tx, name, 'share');
  if (!hops) throw unknownHost(name);
  if (destinationDigest(hops) !== place) throw hostChanged(name);
  assertHostFor(hostOf(hops), { username: owner });
}

const unknownHost = (name: string) =>
  new WindlassError('host_not_allowed', {
    detail: `Host not allowed: ${name} is not a host of this service.`,
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
