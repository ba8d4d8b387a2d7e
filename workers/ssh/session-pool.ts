import { failureLevel } from '../../shared/database/failure-level.ts';
import type { Notifications } from '../../shared/database/notifications.ts';
import { hostChanged } from '../../shared/ssh/destination.ts';
import type { LoginDialogue } from './login-dialogue.ts';
import { PooledConnection } from './pooled-connection.ts';
import type { RemoteSession } from './remote-session.ts';
import { type ConnectorContext, SessionConnector } from './session-connector.ts';
import { judgeConnection, readSessions } from './unused-connections.ts';

const SWEEP_MS = 5_000;

interface PoolContext extends ConnectorContext {
  notifications: Notifications;
  /** Called with each connection of a session that has an agent. */
  onAgentConnection(session: RemoteSession): void;
  /** Whether a connection is kept though it is idle or its session has ended. */
  isNeeded(sid: string): boolean;
}

/** This worker's connections, one per session. */
export class SessionPool {
  readonly #context: PoolContext;
  readonly #connector: SessionConnector;
  readonly #pooled = new Map<string, PooledConnection>();
  /** Connections that take no new users, each until its last one leaves. */
  readonly #retired = new Set<PooledConnection>();
  readonly #stop: () => void;
  #isSweeping = false;
  /** Something may have changed since the sweep began to look. */
  #isSweepDue = false;

  constructor(context: PoolContext) {
    this.#context = context;
    this.#connector = new SessionConnector(context);
    const timer = setInterval(() => void this.#sweep(), SWEEP_MS);
    const unsubscribe = context.notifications.on('session', sid => {
      // Else the sweep does it.
      if (this.#all().some(pooled => pooled.sid === sid)) void this.#sweep();
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
    const pooled = this.find(sid) ?? this.open(sid);
    try {
      return await pooled.use(signal, work);
    } finally {
      this.#closeIfLeft(pooled);
    }
  }

  /** The session's connection that is open or being opened. */
  find(sid: string): PooledConnection | undefined {
    return this.#pooled.get(sid);
  }

  /** Whether the session's connection is open or being opened. */
  has(sid: string): boolean {
    return this.#pooled.has(sid);
  }

  /** Whether the session has an agent. Begins to connect, as that is needed soon. Throws `session_not_found`. */
  hasAgent(sid: string): Promise<boolean> {
    return (this.find(sid) ?? this.open(sid)).hasAgent;
  }

  /** Closes all connections; runs on hosts go on. */
  close(): void {
    this.#stop();
    for (const pooled of this.#all()) pooled.close();
    this.#pooled.clear();
  }

  /** Opens a connection in place of the session's present one, with a `dialogue` if the host may ask its user. */
  open(sid: string, dialogue?: LoginDialogue): PooledConnection {
    const pooled = new PooledConnection(sid, this.#connector, dialogue);
    this.#pooled.set(sid, pooled);
    const forget = () => {
      if (this.#pooled.get(sid) === pooled) this.#pooled.delete(sid);
      const isLost = dialogue && (dialogue.wasAsked || !pooled.isConnected);
      // Another one may have taken its place.
      if (isLost && !this.#pooled.has(sid)) void this.#connector.release(sid);
    };
    pooled.session.then(async session => {
      void session.closed.then(forget);
      // One that its user made stays until they log in again.
      void session.hung.then(() => pooled.livesWithConnection || this.retire(pooled));
      if (await pooled.hasAgent) this.#context.onAgentConnection(session);
    }, forget);
    return pooled;
  }

  /** Tells that this worker does not hold the connection, where it has none and no login waits for its user. */
  async releaseIfLost(sid: string): Promise<void> {
    const pooled = this.find(sid);
    // A login tells of its own end.
    if (!pooled?.isConnected && !pooled?.dialogue) await this.#connector.release(sid);
  }

  /** All that are open or being opened. */
  #all(): PooledConnection[] {
    return [...this.#pooled.values(), ...this.#retired];
  }

  /** Present users keep it; later ones get another connection. */
  retire(pooled: PooledConnection): void {
    if (this.#pooled.get(pooled.sid) !== pooled) return;
    this.#pooled.delete(pooled.sid);
    this.#retired.add(pooled);
    this.#closeIfLeft(pooled);
  }

  #closeIfLeft(pooled: PooledConnection): void {
    if (pooled.users === 0 && this.#retired.delete(pooled)) pooled.close();
  }

  /** One at a time, as each looks at all connections: a changed host tells of each of its sessions at once. */
  async #sweep(): Promise<void> {
    this.#isSweepDue = true;
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    while (this.#isSweepDue) {
      this.#isSweepDue = false;
      await this.#closeUnused().catch(this.#explain);
    }
    this.#isSweeping = false;
  }

  readonly #explain = (error: unknown) =>
    this.#context.log[failureLevel(error)]({ err: error }, 'the session sweep failed');

  async #closeUnused(): Promise<void> {
    const all = this.#all();
    if (all.length === 0) return;
    const { database, isNeeded } = this.#context;
    const found = await readSessions(
      database.db,
      all.map(({ sid }) => sid),
    );
    const changed: (() => Promise<void>)[] = [];
    for (const pooled of all) {
      const { sid } = pooled;
      const now = found.get(sid);
      const verdict = judgeConnection(pooled, now, isNeeded(sid));
      if (verdict === 'retire') this.retire(pooled);
      if (verdict !== 'hostChanged' || !now) continue;
      pooled.hostChanged = hostChanged(now.session.hostname);
      if (this.#pooled.get(sid) === pooled) this.#pooled.delete(sid);
      this.#retired.delete(pooled);
      // The session ends before its jobs tell why they did.
      changed.push(() =>
        this.#connector
          .endForChangedHost(now.session)
          .catch(this.#explain)
          .then(() => pooled.close()),
      );
    }
    await Promise.all(changed.map(end => end()));
  }
}
