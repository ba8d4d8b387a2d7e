import { eq, inArray } from 'drizzle-orm';
import type { Notifications } from '../../shared/database/notifications.ts';
import { type JobRow, type SessionRow, sessions } from '../../shared/database/schema.ts';
import type { WindlassError } from '../../shared/errors/errors.ts';
import { abortable } from '../../shared/process/abort.ts';
import { unseal } from '../../shared/secrets/secrets.ts';
import { type Hops, readHops } from '../../shared/ssh/hops.ts';
import { destinationDigest, hostChanged } from '../../shared/ssh/host-place.ts';
import { FinishedRunRemover } from '../runs/finished-run-remover.ts';
import { isHostChanged } from './changed-hosts.ts';
import { isHeldElsewhere, takeAnswers } from './held-sessions.ts';
import {
  type Challenge,
  challengeExpired,
  LoginDialogue,
  reconnectRequired,
} from './login-dialogue.ts';
import type { RemoteSession } from './remote-session.ts';
import {
  type ConnectorContext,
  SessionConnector,
  type SessionOfHost,
} from './session-connector.ts';

/** A connection that was not used for so long is closed. */
const IDLE_MS = 300_000;
const SWEEP_MS = 5_000;

interface Pooled {
  sid: string;
  session: Promise<RemoteSession>;
  /** The same for callers that did not begin the login: after a refusal the user may try again. */
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
  /** The way that it was made for, once known: the versions of its entries, and its place. */
  entry?: { versions: string; place: string };
  /** The entries name another place now: nobody may use the connection any more. */
  hostChanged?: WindlassError;
}

/** What a login came to: a challenge, or a connection. */
export type LoginStep = { challenge: Challenge } | { challenge?: undefined; wasAsked: boolean };

interface PoolContext extends ConnectorContext {
  notifications: Notifications;
}

/**
 * This worker's connections, one per session. Also removes finished runs from their hosts, whichever worker followed
 * them.
 */
export class SessionPool {
  readonly #context: PoolContext;
  readonly #connector: SessionConnector;
  readonly #pooled = new Map<string, Pooled>();
  /** Connections that take no new users, each until its last one leaves. */
  readonly #retired = new Set<Pooled>();
  readonly #remover: FinishedRunRemover;
  readonly #stop: () => void;
  #sweeping = false;

  constructor(context: PoolContext) {
    this.#context = context;
    this.#connector = new SessionConnector(context);
    const { database, log } = context;
    this.#remover = new FinishedRunRemover({
      ...{ database, log },
      use: (...given) => this.use(...given),
      limitSeconds: context.config.LIMIT_COMMAND_SECONDS,
      mayUse: sid => this.mayUse(sid),
    });
    const timer = setInterval(() => void this.#sweep(), SWEEP_MS);
    const unsubscribe = context.notifications.on('session', sid => {
      // Else the sweep does it.
      if (this.#all().some(pooled => pooled.sid === sid)) this.#closeUnused().catch(this.#explain);
    });
    this.#stop = () => {
      clearInterval(timer);
      unsubscribe();
    };
  }

  /** Whether it is connected, or its login was never refused: work that nobody waits for uses no other credential. */
  async mayUse(sid: string): Promise<boolean> {
    return this.has(sid) || !(await this.#connector.wasEverRefused(sid));
  }

  /**
   * Calls `work` with the session's connection, made if there is none. Throws `session_not_found`, `host_changed`, and
   * connect()'s errors.
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
      this.#closeIfLeft(pooled);
    }
  }

  /**
   * Logs in for a session, up to the host's questions to its user. A second call for the same job continues the first.
   */
  async logIn(sid: string, job: string, signal: AbortSignal): Promise<LoginStep> {
    const present = this.#pooled.get(sid);
    if (present && (await abortable(isUsable(present, job), signal)))
      return this.#untilAsked(present, signal);
    if (present?.isConnected) this.#retire(present);
    else if (present) close(present);
    return this.#untilAsked(this.#open(sid, new LoginDialogue(job)), signal);
  }

  /** Continues a login. Throws `challenge_expired`, and ReleaseJob if another worker has it. */
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

  /**
   * Where a login of the session waits for its user: here, at another live worker, which may have the connection, or
   * nowhere.
   */
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

  /** Whether the session has an agent. Begins to connect, as that is needed soon. Throws `session_not_found`. */
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
    for (const pooled of this.#all()) close(pooled);
    this.#pooled.clear();
  }

  #open(sid: string, dialogue?: LoginDialogue): Pooled {
    // Not aborted with the job that opens it: others may wait for the same connection.
    const found = this.#connector.read(sid);
    const connected = found.then(async row => {
      const remote = await this.#connector.connect(row, dialogue);
      if (row.session.agent) this.#remover.removeOnConnection(remote);
      return remote;
    });
    const pooled: Pooled = {
      sid,
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
      const isLost = dialogue && (dialogue.wasAsked || !pooled.isConnected);
      // Another one may have taken its place.
      if (isLost && !this.#pooled.has(sid)) void this.#connector.release(sid);
    };
    pooled.session.then(session => {
      pooled.isConnected = true;
      void session.closed.then(forget);
      // One that its user made stays until they log in again.
      void session.hung.then(() => livesWithConnection(pooled) || this.#retire(pooled));
    }, forget);
    pooled.hasAgent.catch(() => {});
    pooled.shared.catch(() => {});
    const setEntry = ({ hops }: SessionOfHost) => {
      pooled.entry = { versions: versionsOf(hops), place: destinationDigest(hops) };
    };
    found.then(setEntry, () => {});
    return pooled;
  }

  /** All that are open or being opened. */
  #all(): Pooled[] {
    return [...this.#pooled.values(), ...this.#retired];
  }

  /** Present users keep it; later ones get another connection. */
  #retire(pooled: Pooled): void {
    if (this.#pooled.get(pooled.sid) !== pooled) return;
    this.#pooled.delete(pooled.sid);
    this.#retired.add(pooled);
    this.#closeIfLeft(pooled);
  }

  #closeIfLeft(pooled: Pooled): void {
    if (pooled.users === 0 && this.#retired.delete(pooled)) close(pooled);
  }

  async #sweep(): Promise<void> {
    if (this.#sweeping) return;
    this.#sweeping = true;
    try {
      await this.#closeUnused();
      if (this.#context.config.SEAL_PRIVATE_KEYS) await this.#remover.sweep();
    } catch (error) {
      this.#explain(error);
    } finally {
      this.#sweeping = false;
    }
  }

  readonly #explain = (error: unknown) =>
    this.#context.log.debug({ err: error }, 'the session sweep failed');

  /**
   * Closes idle connections, and those of ended sessions without runs to remove. If a host's entry was changed, the
   * next use connects anew; if the host is at another place, the connection is closed at once.
   */
  async #closeUnused(): Promise<void> {
    const all = this.#all();
    if (all.length === 0) return;
    const { db } = this.#context.database;
    const sids = all.map(({ sid }) => sid);
    const rows = await db.select().from(sessions).where(inArray(sessions.sid, sids));
    const ways = await readHops(
      db,
      rows.map(({ hostname }) => hostname),
    );
    const found = new Map(
      rows.map(session => [session.sid, { session, hops: ways.get(session.hostname) }]),
    );
    const ended: SessionRow[] = [];
    for (const pooled of all) {
      const { sid, entry } = pooled;
      const row = found.get(sid);
      const isPresent = this.#pooled.get(sid) === pooled;
      if (row && isHostChanged(row, entry?.place)) {
        pooled.hostChanged = hostChanged(row.session.hostname);
        if (isPresent) this.#pooled.delete(sid);
        this.#retired.delete(pooled);
        close(pooled);
        ended.push(row.session);
        continue;
      }
      if (!isPresent) continue;
      const isOnlyOne = livesWithConnection(pooled);
      const idle = !isOnlyOne && performance.now() - pooled.usedAt > IDLE_MS;
      const isAlive = row !== undefined && !row.session.ended;
      const isOutdated =
        isAlive &&
        !isOnlyOne &&
        entry !== undefined &&
        row.hops !== undefined &&
        entry.versions !== versionsOf(row.hops);
      const isNeeded = pooled.users > 0 || this.#remover.hasGathered(sid) || (isAlive && !idle);
      if (isOutdated || !isNeeded) this.#retire(pooled);
    }
    for (const session of ended) await this.#connector.endForChangedHost(session);
  }
}

/** Whether only its user could open the connection again. */
const livesWithConnection = ({ dialogue }: Pooled) => dialogue?.wasAsked === true;

const versionsOf = (hops: Hops) => hops.map(({ version }) => version).join();

/** A connection of a host that does not hang, or the same job's login; an earlier job's login has other credentials. */
async function isUsable(pooled: Pooled, job: string): Promise<boolean> {
  const { session, dialogue } = pooled;
  if (dialogue?.job === job) return true;
  if (dialogue && !pooled.isConnected) return false;
  return session.then(
    ({ isHung }) => !isHung,
    () => false,
  );
}

function close({ session, dialogue }: Pooled): void {
  dialogue?.cancel();
  session.then(open => open.close()).catch(() => {});
}
