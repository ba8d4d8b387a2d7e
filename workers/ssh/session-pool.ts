import { eq, inArray } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import { abortable } from '../../shared/abort.ts';
import type { Config } from '../../shared/config.ts';
import type { Database } from '../../shared/database/connect.ts';
import type { Notifications } from '../../shared/database/notifications.ts';
import {
  type HostRow,
  hosts,
  type JobRow,
  type SessionRow,
  sessions,
} from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';
import { hopsOf, hostChanged, placeOf } from '../../shared/host-place.ts';
import type { Logger } from '../../shared/log.ts';
import { type Credential, type Sealed, unseal } from '../../shared/secrets.ts';
import { FinishedRunRemover } from '../runs/finished-run-remover.ts';
import { endForChangedHost, isHostChanged } from './changed-hosts.ts';
import { CircuitBreakers } from './circuit-breaker.ts';
import { type Connection, connect } from './connect.ts';
import { unreachable } from './dial.ts';
import { isHeldElsewhere, releaseSession, requireReconnect, takeAnswers } from './held-sessions.ts';
import {
  type Challenge,
  challengeExpired,
  LoginDialogue,
  reconnectRequired,
} from './login-dialogue.ts';
import { RefusedLogins } from './refused-logins.ts';
import { RemoteSession } from './remote-session.ts';

/** A connection that was not used for so long is closed. */
const IDLE_MS = 300_000;
/** For all of it: the permit of the circuit breaker, the name, TCP, the login. */
const CONNECT_MS = 60_000;
/** The same where its user may be asked: a little more than the dialogue itself allows. */
const DIALOGUE_CONNECT_MS = 150_000;
const SWEEP_MS = 5_000;
const MAX_SHELLS = 1_000;

interface Pooled {
  session: Promise<RemoteSession>;
  /** The same for whoever did not begin the login: a user who was refused may try again. */
  shared: Promise<RemoteSession>;
  /** Where its login may ask the user. */
  dialogue?: LoginDialogue;
  isConnected?: boolean;
  /** Whether the session has an agent, which never changes. */
  hasAgent: Promise<boolean>;
  /** Calls of use() that are under way. */
  users: number;
  /** performance.now() when the last of them ended. */
  usedAt: number;
  /** The host's entry that it was made for, once that is read: its version, and the place that it names. */
  entry?: { version: number; place: string };
  /** The entry names another place now: nobody may use the connection any more. */
  hostChanged?: WindlassError;
  /** Takes no new users, and is closed when the last one leaves. */
  isRetired?: boolean;
}

interface Openable {
  session: SessionRow;
  host: HostRow;
}

/** What a login came to: a challenge, or a connection. */
export type LoginStep = { challenge: Challenge } | { challenge?: undefined; wasAsked: boolean };

interface PoolContext {
  /** The worker's id. */
  id: string;
  config: Config;
  database: Database;
  notifications: Notifications;
  log: Logger;
}

/**
 * The connections of this worker, one for each session that it serves. Also removes finished runs from their hosts, whichever
 * worker followed them.
 */
export class SessionPool {
  readonly #context: PoolContext;
  readonly #pooled = new Map<string, Pooled>();
  /** By account. With it, the account's next session starts its agent with one command less. */
  readonly #shells = new LRUCache<string, string>({ max: MAX_SHELLS });
  readonly #breakers: CircuitBreakers;
  readonly #refused: RefusedLogins;
  readonly #remover: FinishedRunRemover;
  readonly #stop: () => void;
  #sweeping = false;

  constructor(context: PoolContext) {
    this.#context = context;
    this.#breakers = new CircuitBreakers(context.config.LIMIT_HOST_CONNECTS);
    this.#refused = new RefusedLogins(context.database);
    const { database, log } = context;
    this.#remover = new FinishedRunRemover({
      ...{ database, log },
      use: (...given) => this.use(...given),
      limitSeconds: context.config.LIMIT_COMMAND_SECONDS,
      mayUse: async sid => this.has(sid) || !(await this.#refused.wasEverRefused(sid)),
    });
    const timer = setInterval(() => void this.#sweep(), SWEEP_MS);
    const unsubscribe = context.notifications.on('session', sid => {
      if (this.#pooled.has(sid)) void this.#closeUnused();
    });
    this.#stop = () => {
      clearInterval(timer);
      unsubscribe();
    };
  }

  /**
   * Calls `work` with the session's connection, made when there is none. Throws `session_not_found` when there is no
   * such session (any more), `host_changed` where its host is another one, and what connect() throws.
   */
  async use<T>(
    sid: string,
    signal: AbortSignal,
    work: (session: RemoteSession) => Promise<T>,
  ): Promise<T> {
    const pooled = this.#pooled.get(sid) ?? this.#open(sid);
    pooled.users++;
    try {
      return await work(await abortable(pooled.shared, signal));
    } catch (error) {
      throw pooled.hostChanged ?? error;
    } finally {
      pooled.users--;
      pooled.usedAt = performance.now();
      if (pooled.isRetired && pooled.users === 0) close(pooled);
    }
  }

  /** Logs in for a session, up to what the host asks its user: by its job, a second call goes on where the first one stands. */
  async logIn(sid: string, job: string, signal: AbortSignal): Promise<LoginStep> {
    const present = this.#pooled.get(sid);
    if (present && (await abortable(isUsable(present, job), signal)))
      return this.#untilAsked(present, signal);
    if (present) close(present);
    return this.#untilAsked(this.#open(sid, new LoginDialogue(job)), signal);
  }

  /** Goes on with a login. Throws `challenge_expired`, and ReleaseJob where another worker is to do that. */
  async answer(
    sid: string,
    { challenge, answers }: { challenge: string; answers: string[] },
    signal: AbortSignal,
  ): Promise<LoginStep> {
    const pooled = this.#pooled.get(sid);
    if (!pooled?.dialogue) throw challengeExpired();
    pooled.dialogue.answer(challenge, answers);
    return this.#untilAsked(pooled, signal);
  }

  /** Whether a login of the session waits here for its user, or another worker that is alive has that or the connection. */
  async placeOfLogin(sid: string): Promise<'here' | 'elsewhere' | 'nowhere'> {
    if (this.#pooled.get(sid)?.dialogue) return 'here';
    const { database, id } = this.#context;
    return (await isHeldElsewhere(database.db, sid, id)) ? 'elsewhere' : 'nowhere';
  }

  /** What its user has answered last, once. */
  async takeAnswers(sid: string): Promise<string[]> {
    const [row] = await this.#context.database.db
      .select()
      .from(sessions)
      .where(eq(sessions.sid, sid));
    const sealed = await takeAnswers(this.#context.database.db, sid);
    const { SEAL_PRIVATE_KEYS } = this.#context.config;
    if (!row || !sealed || !SEAL_PRIVATE_KEYS) throw challengeExpired();
    return (await unseal<string[]>(SEAL_PRIVATE_KEYS, row, sealed)).secret;
  }

  #untilAsked(pooled: Pooled, signal: AbortSignal): Promise<LoginStep> {
    const { dialogue } = pooled;
    const done = pooled.session.then(() => ({ wasAsked: dialogue?.wasAsked ?? false }));
    const asked = dialogue?.next.then(challenge => ({ challenge }));
    return abortable(asked ? Promise.race([done, asked]) : done, signal);
  }

  /** Whether the session's connection is open or being opened. */
  has(sid: string): boolean {
    return this.#pooled.has(sid);
  }

  /** Whether the session has an agent. Begins to open its connection, which is needed soon. Throws `session_not_found`. */
  hasAgent(sid: string): Promise<boolean> {
    return (this.#pooled.get(sid) ?? this.#open(sid)).hasAgent;
  }

  /** Removes the run of a job whose end is committed from its host. */
  removeFinishedRun(job: JobRow): void {
    this.#remover.removeSoon(job);
  }

  /** Closes all connections; runs on hosts go on. */
  close(): void {
    this.#stop();
    for (const pooled of this.#pooled.values()) close(pooled);
    this.#pooled.clear();
  }

  #open(sid: string, dialogue?: LoginDialogue): Pooled {
    // Not aborted with the job that opens it: others may wait for the same connection.
    const found = this.#read(sid);
    const connected = found.then(row => this.#connect(row, dialogue));
    const pooled: Pooled = {
      hasAgent: found.then(({ session }) => session.agent),
      session: connected,
      shared: connected.catch(async (error: unknown) => {
        if (!dialogue?.wasAsked) throw error;
        throw reconnectRequired((await found).session.hostname);
      }),
      dialogue,
      users: 0,
      usedAt: performance.now(),
    };
    this.#pooled.set(sid, pooled);
    const forget = () => {
      if (this.#pooled.get(sid) === pooled) this.#pooled.delete(sid);
    };
    pooled.session.then(session => {
      pooled.isConnected = true;
      void session.closed.then(forget);
    }, forget);
    pooled.hasAgent.catch(() => {});
    pooled.shared.catch(() => {});
    const setEntry = ({ host }: Openable) => {
      pooled.entry = { version: host.version, place: placeOf(hopsOf(host)) };
    };
    found.then(setEntry, () => {});
    return pooled;
  }

  async #read(sid: string): Promise<Openable> {
    const [found] = await this.#context.database.db
      .select({ session: sessions, host: hosts })
      .from(sessions)
      .leftJoin(hosts, eq(hosts.name, sessions.hostname))
      .where(eq(sessions.sid, sid));
    if (found && isHostChanged(found)) throw await this.#endForChangedHost(found.session);
    if (!found?.host || !found.session.sealed) throw new WindlassError('session_not_found');
    return { session: found.session, host: found.host };
  }

  async #connect(
    { session, host }: Openable,
    dialogue: LoginDialogue | undefined,
  ): Promise<RemoteSession> {
    const { sid, username } = session;
    if (session.interactive && !dialogue) throw reconnectRequired(session.hostname);
    const ask = dialogue?.ask ?? (() => this.#requireReconnect(session));
    const signal = AbortSignal.timeout(dialogue ? DIALOGUE_CONNECT_MS : CONNECT_MS);
    const { SSH_ALGORITHMS: algorithms } = this.#context.config;
    const [{ secret: credential, place }] = await Promise.all([
      this.#openCredential(session),
      // What its user asks for is tried.
      dialogue ? undefined : this.#refused.throwIfRefused(sid),
    ]);
    const target = { host, username, credential, place, ask, algorithms };
    const connection = await this.#breakers
      .of(host)
      .execute(() => begin(connect(target, signal), dialogue), signal)
      .then(({ connecting }) => connecting)
      .catch(async (error: unknown) => {
        this.#refused.record(sid, error);
        if (isHostChangedError(error)) throw await this.#endForChangedHost(session);
        if (!signal.aborted) throw error;
        throw unreachable(host, `no connection within ${CONNECT_MS / 1_000} s.`, error);
      });
    const account = `${username}@${host.address}:${host.port}`;
    const remote = new RemoteSession(connection, {
      spoolLimitBytes: this.#context.config.LIMIT_SPOOL_BYTES,
      shell: session.shell ?? this.#shells.get(account),
      onShell: found => this.#shells.set(account, found),
    });
    if (session.agent) this.#remover.removeOnConnection(remote);
    if (dialogue?.wasAsked) void remote.closed.then(() => this.#release(sid));
    return remote;
  }

  /** The host asks for more than before: what was sealed is no longer enough. */
  async #requireReconnect(session: SessionRow): Promise<never> {
    await requireReconnect(this.#context.database.db, session);
    throw reconnectRequired(session.hostname);
  }

  async #release(sid: string): Promise<void> {
    const { database, id, log } = this.#context;
    await releaseSession(database.db, sid, id).catch((error: unknown) => {
      // Its jobs notice by themselves; what its user is told waits for this worker's end.
      log.debug({ err: error, sid }, 'the loss of a connection could not be recorded');
    });
  }

  /** Bytes that do not open for this session and host name were put there by somebody: they are good for nothing. */
  async #openCredential(session: SessionRow): Promise<Sealed<Credential>> {
    const { SEAL_PRIVATE_KEYS } = this.#context.config;
    if (!SEAL_PRIVATE_KEYS || !session.sealed)
      throw new Error('this worker has no SEAL_PRIVATE_KEYS');
    try {
      return await unseal<Credential>(SEAL_PRIVATE_KEYS, session, session.sealed);
    } catch (error) {
      if (error instanceof WindlassError) throw error;
      this.#context.log.warn({ err: error, sid: session.sid }, 'a credential does not open');
      throw await this.#endForChangedHost(session);
    }
  }

  async #endForChangedHost({
    sid,
    hostname,
  }: Pick<SessionRow, 'sid' | 'hostname'>): Promise<WindlassError> {
    await endForChangedHost(this.#context.database.db, sid);
    return hostChanged(hostname);
  }

  async #sweep(): Promise<void> {
    if (this.#sweeping) return;
    this.#sweeping = true;
    try {
      await this.#closeUnused();
      if (this.#context.config.SEAL_PRIVATE_KEYS) await this.#remover.sweep();
    } catch (error) {
      this.#context.log.debug({ err: error }, 'the session sweep failed');
    } finally {
      this.#sweeping = false;
    }
  }

  /**
   * Closes connections that are idle, and those of ended sessions that have no run to remove. Retires a connection whose
   * host's entry was changed: the next one is made for the new entry. One whose host is at another place is closed at once.
   */
  async #closeUnused(): Promise<void> {
    const sids = [...this.#pooled.keys()];
    if (sids.length === 0) return;
    const rows = await this.#context.database.db
      .select({ session: sessions, host: hosts })
      .from(sessions)
      .leftJoin(hosts, eq(hosts.name, sessions.hostname))
      .where(inArray(sessions.sid, sids));
    const found = new Map(rows.map(row => [row.session.sid, row]));
    const ended: SessionRow[] = [];
    for (const [sid, pooled] of this.#pooled) {
      const row = found.get(sid);
      if (row && isHostChanged(row, pooled.entry?.place)) {
        pooled.hostChanged = hostChanged(row.session.hostname);
        this.#pooled.delete(sid);
        close(pooled);
        ended.push(row.session);
        continue;
      }
      // Only its user could open it again.
      const livesWithConnection = pooled.dialogue?.wasAsked === true;
      const idle = !livesWithConnection && performance.now() - pooled.usedAt > IDLE_MS;
      const isAlive = row !== undefined && !row.session.ended;
      const { entry } = pooled;
      pooled.isRetired =
        isAlive &&
        !livesWithConnection &&
        entry !== undefined &&
        entry.version !== row.host?.version;
      const isNeeded = pooled.users > 0 || this.#remover.hasGathered(sid) || (isAlive && !idle);
      if ((isNeeded && !pooled.isRetired) || !sids.includes(sid)) continue;
      this.#pooled.delete(sid);
      if (pooled.users === 0) close(pooled);
    }
    for (const session of ended) await this.#endForChangedHost(session);
  }
}

const isHostChangedError = (error: unknown) =>
  error instanceof WindlassError && error.code === 'host_changed';

/** A connection, or the login of the same job; not the login of an earlier job, which has other credentials. */
async function isUsable(pooled: Pooled, job: string): Promise<boolean> {
  const { session, dialogue } = pooled;
  if (dialogue) return dialogue.job === job || pooled.isConnected === true;
  return session.then(
    () => true,
    () => false,
  );
}

/** What a circuit breaker has to wait for: a host that asks its user something is there, and others must not wait for the user. */
async function begin(
  connecting: Promise<Connection>,
  dialogue: LoginDialogue | undefined,
): Promise<{ connecting: Promise<Connection> }> {
  await (dialogue ? Promise.race([connecting, dialogue.next]) : connecting);
  return { connecting };
}

function close({ session, dialogue }: Pooled): void {
  dialogue?.cancel();
  session.then(open => open.close()).catch(() => {});
}
