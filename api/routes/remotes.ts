import { and, eq } from 'drizzle-orm';
import { sessionTarget } from '../../shared/audit/session-target.ts';
import { SESSION_COLUMNS } from '../../shared/database/api-columns.ts';
import type { Tx } from '../../shared/database/connect.ts';
import { sessions } from '../../shared/database/schema.ts';
import { publishCancelled } from '../../shared/jobs/cancel.ts';
import { checkIfMatch, sendRecord } from '../http/conditional-requests.ts';
import type { Exchange } from '../http/exchange.ts';
import { pageOf, pageQuery, readPage } from '../http/pagination.ts';
import { publicPath } from '../http/public-url.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { auditOf } from '../identity/audit.ts';
import { currentUser } from '../identity/current-user.ts';
import { operation } from '../openapi/operation.ts';
import { newSession, openSession } from '../remote/open-session.ts';
import { LOGIN_ANSWERS, LOGIN_ERRORS, sendLogin } from '../remote/send-login.ts';
import {
  SESSION_USE,
  sessionRecord,
  tagOf,
  toSessionRecord,
  withoutTime,
} from '../remote/session-record.ts';
import { endSession, findSession, isActive, lockSession, sessionKey } from '../remote/sessions.ts';
import { ThreadedKeyParser } from '../remote/threaded-key-parser.ts';

/** The use of a session whose row was removed just now. */
const UNUSED = { lastEnd: null, hasOpenJob: false, isConnectionHeld: false };

/** Remote sessions: opened here, ended by DELETE or by being idle. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;
  const keys = new ThreadedKeyParser();
  const keyOf = ({ req, res }: Exchange) => sessionKey(api, res, pathParameter(req, 'sid'));
  const findRecord = async (tx: Tx, { req, res }: Exchange) => {
    const row = await findSession(tx, keyOf({ req, res }));
    const [use = UNUSED] = await tx
      .select(SESSION_USE)
      .from(sessions)
      .where(eq(sessions.sid, row.sid));
    const record = toSessionRecord(api.config, row, use);
    return { record, tag: tagOf(record, use) };
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
        const rows = db.select({ session: SESSION_COLUMNS, use: SESSION_USE }).from(sessions);
        const page = await readPage(rows, query(), { by: sessions.sid, key: 'sid', where }, row =>
          toSessionRecord(api.config, row.session, row.use),
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
        const ended = await openSession(api, { req, res }, keys, body());
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
        const { record, tag } = await findRecord(db, { req, res });
        sendRecord({ req, res }, { tag, record: () => record });
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
        const key = keyOf({ req, res });
        const cancelled = await db.transaction(async tx => {
          if (req.get('If-Match') !== undefined) {
            // Locked until it is ended: other uses of it come before this check, or too late.
            await lockSession(tx, key, 'update');
            const { tag } = await findRecord(tx, { req, res });
            checkIfMatch(req, withoutTime(tag), withoutTime);
          }
          const { jobs, closed } = await endSession(tx, key);
          if (closed) await auditOf({ req, res })(tx, 'session.close', sessionTarget(closed));
          return jobs;
        });
        publishCancelled(api, cancelled);
        api.notifications.publish('session', key.sid);
        // RFC 9745: the operation is deprecated since the epoch of this interface.
        res
          .set('Deprecation', '@1767225600')
          .set(
            'Link',
            `<${publicPath(api.config)}/api/docs#sessions>; rel="deprecation"; type="text/html"`,
          );
        res.statusMessage = 'Session deleted.';
        res.status(204).end();
      },
    }),
  });
});
