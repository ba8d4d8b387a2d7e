import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { Notifications } from '../../shared/database/notifications.ts';
import { type HostRow, hosts, sessions, workers } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { createLog } from '../../shared/process/log.ts';
import { type Credential, generateSealKeys, seal } from '../../shared/secrets/secrets.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { destinationDigest } from '../../shared/ssh/destination.ts';
import { withDatabase } from '../../test/harness/databases/migrated-database.ts';
import { makeHungDisk } from '../../test/harness/hosts/hung-disk.ts';
import { type CodeHost, startCodeHost } from '../../test/harness/hosts/pam-sshd.ts';
import { startTestSshd, type TestSshd } from '../../test/harness/hosts/sshd.ts';
import { makeJobContext } from '../../test/harness/job-context.ts';
import { describeUnless, missingPrograms, missingRoot } from '../../test/harness/skip.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { openSftp } from '../remote-files/sftp-requests.ts';
import { openSession } from './open-session.ts';
import type { RemoteSession } from './remote-session.ts';
import { SessionConnector } from './session-connector.ts';
import { answerLogin, logInForSession, placeOfLogin } from './session-logins.ts';
import { SessionPool } from './session-pool.ts';

const given = withDatabase('session-pool');
const patient = new AbortController().signal;
const log = createLog({ level: 'silent', name: 'test' });
const WORKER = 'w';
let notifications: Notifications;
let pool: SessionPool;
let publicKey: string;

beforeAll(async () => {
  const keys = await generateSealKeys();
  publicKey = keys.publicKey;
  notifications = new Notifications(given.database(), log);
  await notifications.listen();
  const config = readConfig({ SEAL_PUBLIC_KEY: publicKey, SEAL_PRIVATE_KEYS: keys.privateKey });
  pool = new SessionPool({
    id: WORKER,
    config,
    database: given.database(),
    notifications,
    log,
    metrics: { hostConnectionFailed: () => {} },
    onAgentConnection: () => {},
    isNeeded: () => false,
  });
});
afterAll(async () => {
  pool?.close();
  await notifications?.close();
});

/** A session on a host of its own entry of the same name, or on the host `of` another session. */
async function makeSession(sshd: TestSshd, secret: Credential, of?: string): Promise<string> {
  const { db } = given.database();
  const { host: address, port, hostKey, username } = sshd;
  const sid = newId();
  const entry = { name: of ?? sid, address, port, keys: [hostKey], private: true };
  if (of === undefined) await db.insert(hosts).values(entry);
  const session = { sid, owner: 'alice', hostname: entry.name };
  const sealed = await seal(publicKey, session, {
    destination: destinationDigest([entry as HostRow]),
    secret,
  });
  await db.insert(sessions).values({ ...session, username, agent: false, sealed });
  return sid;
}

/** Changes the entry of a session's host, and has the pool look at it. */
async function changeHost(sid: string, change: Partial<HostRow>): Promise<void> {
  const { db } = given.database();
  await db.update(hosts).set(change).where(eq(hosts.name, sid));
  notifications.publish('session', sid);
}

/** Uses the session until the connection closes; the connection, and the end of its use. */
async function hold(sid: string): Promise<{ held: RemoteSession; end: Promise<unknown> }> {
  let tell = (_: RemoteSession) => {};
  const held = new Promise<RemoteSession>(resolve => {
    tell = resolve;
  });
  const using = pool.use(sid, patient, async session => {
    tell(session);
    await session.closed;
    throw new Error('the connection was lost');
  });
  const end = using.catch((error: unknown) => error);
  return { held: await Promise.race([held, using]), end };
}

const present = (sid: string) => pool.use(sid, patient, async session => session);

describeUnless(missingPrograms('sshd'), 'a connection whose host has another entry', () => {
  let sshd: TestSshd;
  beforeAll(async () => {
    sshd = await startTestSshd();
  });
  afterAll(() => sshd?.stop());

  test('is kept by its users until the entry names another destination', async () => {
    const sid = await makeSession(sshd, { privateKey: sshd.privateKey });
    const { held, end } = await hold(sid);
    await changeHost(sid, { version: 2 });
    await waitFor(async () => (await present(sid)) !== held, { what: 'another connection' });
    expect(held.isClosed).toBe(false);
    await changeHost(sid, { port: sshd.port + 1 });
    expect(await end).toMatchObject({ code: 'host_changed' });
    expect(pool.has(sid)).toBe(false);
  });

  test('ends its session once, however many sessions that host has', async () => {
    const first = await makeSession(sshd, { privateKey: sshd.privateKey });
    const more = Array.from({ length: 7 }, () =>
      makeSession(sshd, { privateKey: sshd.privateKey }, first),
    );
    const sids = [first, ...(await Promise.all(more))];
    const held = await Promise.all(sids.map(hold));
    const ended = vi.spyOn(SessionConnector.prototype, 'endForChangedHost');
    await changeHost(first, { port: sshd.port + 1 });
    for (const sid of sids) notifications.publish('session', sid);
    for (const { end } of held) expect(await end).toMatchObject({ code: 'host_changed' });
    const of = ended.mock.calls.map(([{ sid }]) => sid);
    ended.mockRestore();
    expect(of.toSorted()).toEqual(sids.toSorted());
  });
});

const skip = missingRoot() ?? missingPrograms('sshd', 'google-authenticator');

describeUnless(skip, 'a connection that only its user can make, and whose host hangs', () => {
  const disk = makeHungDisk();
  let host: CodeHost;
  beforeAll(async () => {
    host = await startCodeHost({ lines: [disk.line] });
  });
  afterAll(async () => {
    await host?.stop();
    disk.remove();
  });

  /** By a code, which is asked for. */
  async function logInByCode(sid: string): Promise<void> {
    const { challenge } = await logInForSession(pool, { sid, job: newId() }, patient);
    expect(challenge?.prompts).toHaveLength(1);
    const given = { sid, challenge: challenge?.id ?? '', answers: [host.nextCode()] };
    const step = await answerLogin(pool, given, patient);
    expect(step).toEqual({ wasAsked: true });
    await setHolder(sid);
  }
  const setHolder = (sid: string) =>
    given.database().db.update(sessions).set({ holder: WORKER }).where(eq(sessions.sid, sid));
  const holderOf = async (sid: string) => {
    const { db } = given.database();
    const [row] = await db.select().from(sessions).where(eq(sessions.sid, sid));
    return row?.holder;
  };

  const awaitLoss = (sid: string) =>
    waitFor(async () => (await holderOf(sid)) === null, { what: 'the loss to be recorded' });

  test('is made again when its user logs in again, and its users keep the old one', async () => {
    const sid = await makeSession(host.sshd, {});
    await logInByCode(sid);
    const { held, end } = await hold(sid);
    disk.hang();
    const cancel = new AbortController();
    await openSftp(held, cancel.signal);
    cancel.abort();
    await held.hung;
    // Nobody else can log in: it stays until its user does.
    expect(await present(sid)).toBe(held);
    await logInByCode(sid);
    const next = await present(sid);
    expect([next === held, held.isClosed]).toEqual([false, false]);
    const command = await held.exec('true');
    command.stdout.resume();
    expect(await command.closed).toMatchObject({ code: 0 });
    held.close();
    await end;
    await held.closed;
    expect(await holderOf(sid)).toBe(WORKER);
    next.close();
    await awaitLoss(sid);
  });

  test('keeps no work waiting while its next login asks', async () => {
    const sid = await makeSession(host.sshd, {});
    const { challenge } = await logInForSession(pool, { sid, job: newId() }, patient);
    await expect(present(sid)).rejects.toMatchObject({ code: 'reconnect_required' });
    const answer = { sid, challenge: challenge?.id ?? '', answers: [host.nextCode()] };
    await answerLogin(pool, answer, patient);
    expect((await present(sid)).isClosed).toBe(false);
  });

  test('is not where a later login waits for its answers', async () => {
    const { db } = given.database();
    const sid = await makeSession(host.sshd, {});
    await logInByCode(sid);
    const other = 'another worker';
    await db.insert(workers).values({ id: other, host: 'h', pid: 1, slots: {} });
    await db.update(sessions).set({ holder: other }).where(eq(sessions.sid, sid));
    const worker = { id: WORKER, database: given.database(), sessions: pool };
    expect(await placeOfLogin(worker, sid, newId())).toBe('elsewhere');
    (await present(sid)).close();
  });

  test('is left by one of two logins that come together', async () => {
    const sid = await makeSession(host.sshd, {});
    pool.open(sid);
    const logins = ['first', 'second'].map(job => logInForSession(pool, { sid, job }, patient));
    const ends = await Promise.allSettled(logins);
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(ends).toContainEqual({
      status: 'rejected',
      reason: expect.objectContaining({ code: 'challenge_expired' }),
    });
    pool.find(sid)?.close();
  }, 30_000);

  test('is told as lost where that was before the commit of its login', async () => {
    const { db } = given.database();
    const sid = await makeSession(host.sshd, {});
    await logInByCode(sid);
    const context = makeJobContext<'connect'>({
      sid,
      job: { owner: 'alice' },
      payload: {},
      worker: { id: WORKER, sessions: pool, database: given.database() },
    });
    const { promote, after } = await openSession(context, { wasAsked: true });
    await after?.();
    expect(await holderOf(sid)).toBe(WORKER);
    const lost = await present(sid);
    lost.close();
    await lost.closed;
    await awaitLoss(sid);
    await db.transaction(async tx => promote?.(tx));
    expect(await holderOf(sid)).toBe(WORKER);
    await after?.();
    expect(await holderOf(sid)).toBeNull();
  });

  test('is told as lost where the answer to its next login is wrong', async () => {
    const sid = await makeSession(host.sshd, {});
    const { challenge } = await logInForSession(pool, { sid, job: newId() }, patient);
    await setHolder(sid);
    const given = { sid, challenge: challenge?.id ?? '', answers: ['000000'] };
    await expect(answerLogin(pool, given, patient)).rejects.toMatchObject({
      code: 'remote_authentication_failed',
    });
    await awaitLoss(sid);
  });
});
