import { isDeepStrictEqual } from 'node:util';
import { and, eq, sql } from 'drizzle-orm';
import { sessionTarget } from '../../shared/audit/session-target.ts';
import type { Tx } from '../../shared/database/connect.ts';
import { type HostRow, hosts } from '../../shared/database/schema.ts';
import { conflict, notFound } from '../../shared/errors/errors.ts';
import { publishCancelled } from '../../shared/jobs/cancel.ts';
import { assertHostFor, isHostFor } from '../../shared/ssh/host-access.ts';
import {
  checkIfMatch,
  checkIfNoneMatch,
  sendRecord,
  versionTag,
} from '../http/conditional-requests.ts';
import type { Exchange } from '../http/exchange.ts';
import { pageOf, pageQueryBy, readPage } from '../http/pagination.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { invalidInput } from '../http/validate.ts';
import { auditOf } from '../identity/audit.ts';
import { currentUser, requireAdministrator } from '../identity/current-user.ts';
import { lockAdministrator, lockNamed } from '../identity/lock-user.ts';
import type { User } from '../identity/user.ts';
import { answerWithLocation, operation } from '../openapi/operation.ts';
import { checkAuthorities, toHostKeys, withShownKeys } from '../remote/host-pins.ts';
import {
  fullHost,
  type HostRecord,
  hostChanges,
  hostRecord,
  NO_LOGIN,
  newEndpoint,
  newHost,
  shownKeys,
  toFullHost,
  toShortHost,
} from '../remote/host-record.ts';
import { lockJump, refuseHostsBehind } from '../remote/jump-hosts.ts';
import { type NamedScan, scanHost } from '../remote/scan-host.ts';
import {
  endUnlistedSessions,
  listEndedByHost,
  listOpenSessions,
  refuseOpenSessions,
} from '../remote/sessions-of-host.ts';

/** Hosts that sessions can be opened on, with their pinned keys. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;
  const idleSeconds = api.config.SESSION_IDLE_TIMEOUT;
  const find = async (name: string) => requireHost(name, await selectHost(db, name));
  const scan = (at: NamedScan, { req, res }: Exchange) =>
    // An administrator who has lost that role meanwhile is told neither keys nor why there are none.
    scanHost(api, at, { req, res }).finally(() => requireAdministrator(res));

  resource(router, '/hosts', {
    get: operation({
      id: 'listHosts',
      topic: 'sessions',
      summary: 'List the hosts that you can open sessions on',
      details: 'Server administrators see all.',
      query: pageQueryBy(253),
      answers: { 200: { means: 'A page of hosts.', json: pageOf('HostPage', hostRecord) } },
      handle: async ({ res, query }) => {
        const user = currentUser(res);
        const toRecord = (row: HostRow): HostRecord =>
          user.administrator ? toFullHost(row) : toShortHost(row);
        const where = user.administrator ? undefined : isHostFor(user);
        const rows = db.select().from(hosts);
        res.json(await readPage(rows, query(), { by: hosts.name, key: 'name', where }, toRecord));
      },
    }),
    post: operation({
      id: 'addHost',
      topic: 'sessions',
      summary: 'Add a host, with its keys or trusting what it shows now',
      body: newHost,
      headers: ['Idempotency-Key'],
      for: 'administrators',
      refusesTokens: true,
      answers: { 201: answerWithLocation('Added.', 'The host.', fullHost) },
      errors: ['conflict', 'host_not_allowed', 'remote_connection_failed', 'idempotency_conflict'],
      handle: async ({ req, res, body }) => {
        const { trust, keys, ...given } = body();
        const at = { ...given, address: given.address ?? given.name };
        const { address, port, private: isPrivate } = at;
        const pinned = keys
          ? { keys, isRepeat: false }
          : await scan({ address, port, private: isPrivate }, { req, res });
        if (!pinned) return;
        const host = { ...at, keys: pinned.keys };
        const added = await db.transaction(async tx => {
          await lockListed(tx, currentUser(res), given.users);
          await lockJump(tx, host);
          checkAuthorities(host);
          const [row] = await tx.insert(hosts).values(host).onConflictDoNothing().returning();
          if (row) await auditOf({ req, res })(tx, 'host.create', row.name);
          return row;
        });
        // The response to the first request may have been lost.
        const [present] = added || !pinned.isRepeat ? [] : await selectHost(db, host.name);
        const row =
          added ?? (present && isDeepStrictEqual({ ...present, ...host }, present) && present);
        if (!row) throw conflict(`there is a host ${host.name} already.`, 'Change it with PUT.');
        res.status(201).location(`/api/hosts/${row.name}`).json(toFullHost(row));
      },
    }),
  });

  resource(router, '/hosts/-/scan', {
    post: operation({
      id: 'scanHost',
      topic: 'sessions',
      summary: 'See which keys a machine shows, before a host is added with them',
      details: 'A worker connects to it once. Nothing is kept.',
      body: newEndpoint,
      for: 'administrators',
      refusesTokens: true,
      answers: { 200: { means: 'What it shows.', json: shownKeys } },
      errors: ['host_not_allowed', 'remote_connection_failed', 'idempotency_conflict'],
      headers: ['Idempotency-Key'],
      handle: async ({ req, res, body }) => {
        const shown = await scan(body(), { req, res });
        if (shown) res.set('Cache-Control', 'no-store').json(toHostKeys(shown.keys));
      },
    }),
  });

  resource(router, '/hosts/:name', {
    get: operation({
      id: 'getHost',
      topic: 'sessions',
      summary: 'Look at a host',
      headers: ['If-None-Match'],
      answers: { 200: { means: 'The host.', json: hostRecord }, 304: 'Unchanged.' },
      errors: ['not_found', 'host_not_allowed'],
      handle: async ({ req, res }) => {
        const row = await find(pathParameter(req, 'name'));
        if (!currentUser(res).administrator) assertHostFor(row, currentUser(res));
        // Tags differ: a user who becomes an administrator must not get 304 for the short record.
        const { tag, toRecord } = currentUser(res).administrator
          ? { tag: versionTag(row), toRecord: toFullHost }
          : { tag: versionTag(row, '-short'), toRecord: toShortHost };
        sendRecord({ req, res }, { tag, record: () => toRecord(row) });
      },
    }),
    put: operation({
      id: 'changeHost',
      topic: 'sessions',
      summary: 'Change a host',
      details:
        'Another address, port, key or jump host ends the sessions that are open on it, and on the hosts that are reached through it: host_changed. A list of `users` ends the sessions on it of those that it leaves out, and cancels their jobs.',
      body: hostChanges,
      headers: ['If-Match', 'If-None-Match'],
      for: 'administrators',
      refusesTokens: true,
      answers: { 200: { means: 'Changed.', json: fullHost } },
      errors: ['not_found', 'conflict', 'host_not_allowed', 'remote_connection_failed'],
      handle: async ({ req, res, body }) => {
        const row = await find(pathParameter(req, 'name'));
        checkIfMatch(req, versionTag(row));
        checkIfNoneMatch(req, versionTag(row));
        const { trust, ...given } = body();
        const next = { ...row, ...given };
        const { address, port, private: isPrivate } = next;
        if (trust && next.jump !== null) throw noLogin();
        const shown = trust && (await scan({ address, port, private: isPrivate }, { req, res }));
        if (trust && !shown) return;
        const keys = shown ? withShownKeys(row.keys, shown.keys) : next.keys;
        const { changed, open, cancelled } = await db.transaction(async tx => {
          await lockListed(tx, currentUser(res), given.users);
          if (given.jump) await lockJump(tx, { name: row.name, jump: given.jump });
          if (trust ?? given.keys ?? given.address ?? given.port)
            checkAuthorities({ address, port, keys });
          const open = await listOpenSessions(tx, row.name);
          // A trigger of the table ends them where address, port, keys or jump host change.
          const [written] = await tx
            .update(hosts)
            .set({ ...given, keys, version: sql`${hosts.version} + 1` })
            .where(and(eq(hosts.name, row.name), eq(hosts.version, row.version)))
            .returning();
          if (written) {
            const audit = auditOf({ req, res });
            await audit(tx, 'host.update', row.name);
            const left = await endUnlistedSessions(tx, row.name);
            for (const session of [...(await listEndedByHost(tx, open)), ...left.opened])
              await audit(tx, 'session.close', sessionTarget(session));
            return { changed: written, open, cancelled: left.jobs };
          }
          throw conflict(
            'somebody else changed this host at the same time.',
            'Get it again and repeat the change.',
          );
        });
        publishCancelled(api, cancelled);
        for (const sid of open) api.notifications.publish('session', sid);
        res.json(toFullHost(changed));
      },
    }),
    delete: operation({
      id: 'removeHost',
      topic: 'sessions',
      summary: 'Remove a host that no session is open on, and none is reached through',
      headers: ['If-Match'],
      for: 'administrators',
      refusesTokens: true,
      answers: { 204: 'Removed.' },
      errors: ['not_found', 'conflict'],
      handle: async ({ req, res }) => {
        const name = pathParameter(req, 'name');
        await db.transaction(async tx => {
          await lockAdministrator(tx, currentUser(res));
          // Opening a session locks the row too.
          const row = requireHost(name, await selectHost(tx, name).for('update'));
          checkIfMatch(req, versionTag(row));
          await refuseHostsBehind(tx, name);
          await refuseOpenSessions(tx, { name, idleSeconds });
          await tx.delete(hosts).where(eq(hosts.name, name));
          await auditOf({ req, res })(tx, 'host.delete', name);
        });
        res.status(204).end();
      },
    }),
  });
});

/**
 * Locks the users of a host's list, whom it must not outlive, and the administrator who asks. Throws `invalid_input` that names
 * those that there are not.
 */
async function lockListed(tx: Tx, asks: User, listed: string[] | null | undefined): Promise<void> {
  // In one order with the one who asks.
  const known = listed && (await lockNamed(tx, [...listed, asks.username]));
  await lockAdministrator(tx, asks);
  const unknown = listed?.filter(username => !known?.has(username)) ?? [];
  if (unknown.length === 0) return;
  const problem = `there is no user ${unknown.join(', nor ')}`;
  throw invalidInput([{ field: 'users', problem }], 'GET /api/users lists them.');
}

const noLogin = () => invalidInput([{ field: 'trust', problem: NO_LOGIN }], 'Set "keys" instead.');

const selectHost = (tx: Tx, name: string) => tx.select().from(hosts).where(eq(hosts.name, name));

/** The row of a query by name. Throws `not_found`. */
function requireHost(name: string, [row]: HostRow[]): HostRow {
  if (!row) throw notFound(`there is no host ${name}.`, 'GET /api/hosts lists them.');
  return row;
}
