import { eq } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import type { Database } from '../../shared/database/connect.ts';
import { type SessionRow, sessions } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { Logger } from '../../shared/process/log.ts';
import {
  type Credential,
  type EnvContext,
  type SealContext,
  type Sealed,
  unseal,
} from '../../shared/secrets/secrets.ts';
import type { Config } from '../../shared/settings/config.ts';
import { hostChanged } from '../../shared/ssh/destination.ts';
import { type Hops, hostOf, readHopsTo } from '../../shared/ssh/hops.ts';
import { assertHostFor } from '../../shared/ssh/host-access.ts';
import type { WorkerMetrics } from '../engine/worker-metrics.ts';
import { endForChangedHost, isHostChanged } from './changed-hosts.ts';
import { CircuitBreakers, describeHops } from './circuit-breaker.ts';
import type { Guard } from './connect.ts';
import { connectWithin } from './connect-within.ts';
import { releaseSession, requireReconnect } from './held-sessions.ts';
import { LoginAttempts } from './login-attempts.ts';
import { type LoginDialogue, reconnectRequired } from './login-dialogue.ts';
import { LoginRefusals } from './login-refusals.ts';
import { RefusedCredentials } from './refused-credentials.ts';
import { RemoteSession } from './remote-session.ts';
import { SeenCertificates } from './trusted-keys.ts';

/** For all of it: the permit of the circuit breaker, the name, TCP, the login. */
const CONNECT_MS = 60_000;
/** The limit with questions to the user: a little more than the dialogue's own. */
const DIALOGUE_CONNECT_MS = 150_000;
const MAX_SHELLS = 1_000;

export interface ConnectorContext {
  /** The worker's id. */
  id: string;
  config: Config;
  database: Database;
  log: Logger;
  metrics: Pick<WorkerMetrics, 'hostConnectionFailed'>;
}

/** A session and the hops to its host. */
export interface SessionOfHost {
  session: SessionRow;
  hops: Hops;
}

/** Logs in for sessions, with the credentials that were sealed for them. */
export class SessionConnector {
  readonly #context: ConnectorContext;
  /** By account. With it, the account's next session starts its agent with one command less. */
  readonly #shells = new LRUCache<string, string>({ max: MAX_SHELLS });
  readonly #breakers: CircuitBreakers;
  readonly #seen = new SeenCertificates();
  readonly #refused: RefusedCredentials;
  readonly #refusals: LoginRefusals;

  constructor(context: ConnectorContext) {
    this.#context = context;
    this.#breakers = new CircuitBreakers(context.config.LIMIT_HOST_CONNECTS);
    this.#refused = new RefusedCredentials(context.database);
    this.#refusals = new LoginRefusals(context.database, context.config.LIMIT_REFUSED_LOGINS);
  }

  /** Whether the host has ever refused the session's credentials. */
  wasEverRefused(sid: string): Promise<boolean> {
    return this.#refused.wasEverRefused(sid);
  }

  /**
   * Throws `session_not_found`, `host_changed` where the session was opened for another destination, and `host_not_allowed` where
   * its owner is not on the host's list any more.
   */
  async read(sid: string): Promise<SessionOfHost> {
    const { db } = this.#context.database;
    const [session] = await db.select().from(sessions).where(eq(sessions.sid, sid));
    if (!session) throw new WindlassError('session_not_found');
    const hops = await readHopsTo(db, session.hostname);
    if (isHostChanged({ session, hops })) throw await this.endForChangedHost(session);
    if (!hops || !session.sealed) throw new WindlassError('session_not_found');
    // The API ends such a session, but a writer to the database may have bypassed that. What has ended is cleaned up.
    if (!session.ended) assertHostFor(hostOf(hops), { username: session.owner });
    return { session, hops };
  }

  /**
   * Logs in; through `dialogue` where the host asks its user. Throws `reconnect_required` where only the user can log in,
   * and what connect() throws.
   */
  async connect(
    { session, hops }: SessionOfHost,
    dialogue: LoginDialogue | undefined,
  ): Promise<RemoteSession> {
    const { sid, username } = session;
    if (session.interactive && !dialogue) throw reconnectRequired(session.hostname);
    const ask = dialogue?.ask ?? (() => this.#requireReconnect(session));
    const { SSH_ALGORITHMS: algorithms } = this.#context.config;
    // Jobs log in by what the host has taken before, and are held back by session.
    const guard = dialogue && this.#guardFor(session.owner);
    const attempt = new LoginAttempts(this.#breakers, dialogue).run;
    const [{ secret: credential, destination }, env] = await Promise.all([
      this.#open<Credential>(session, { sealed: session.sealed, context: session }),
      this.#openEnv(session),
      // What its user asks for is tried.
      dialogue ? undefined : this.#refused.throwIfRefused(sid),
    ]);
    const connection = await connectWithin(dialogue ? DIALOGUE_CONNECT_MS : CONNECT_MS, {
      hops,
      username,
      credential,
      destination,
      ask,
      algorithms,
      attempt,
      guard,
      seen: this.#seen,
    }).catch(async (error: unknown) => {
      this.#refused.record(sid, error);
      if (error instanceof WindlassError && error.code === 'remote_connection_failed')
        this.#context.metrics.hostConnectionFailed(session.hostname);
      if (isHostChangedError(error)) throw await this.endForChangedHost(session);
      throw error;
    });
    const account = `${username}@${describeHops(hops)}`;
    return new RemoteSession(connection, {
      spoolLimitBytes: this.#context.config.LIMIT_SPOOL_BYTES,
      startup: session.startup,
      env,
      shell: session.shell ?? this.#shells.get(account),
      onShell: found => this.#shells.set(account, found),
    });
  }

  #guardFor(user: string): Guard {
    return ({ hops, account }, login) =>
      this.#refusals.guard({ user, machine: describeHops(hops), account }, login);
  }

  /** The host asks for more than before: what was sealed is no longer enough. */
  async #requireReconnect(session: SessionRow): Promise<never> {
    await requireReconnect(this.#context.database.db, session);
    throw reconnectRequired(session.hostname);
  }

  /** Records that this worker has no connection any more that only the user could make again. */
  async release(sid: string): Promise<void> {
    const { database, id, log } = this.#context;
    await releaseSession(database.db, sid, id).catch((error: unknown) => {
      // Its jobs notice the loss themselves; the user is told only after this worker's end.
      log.debug({ err: error, sid }, 'the loss of a connection could not be recorded');
    });
  }

  async #openEnv(session: SessionRow): Promise<Record<string, string>> {
    const { sealedEnv: sealed } = session;
    if (!sealed) return {};
    const context: EnvContext = { ...session, of: 'env' };
    return (await this.#open<Record<string, string>>(session, { sealed, context })).secret;
  }

  /** Bytes that do not open for this session and host name were put there by somebody: they are good for nothing. */
  async #open<T>(
    session: SessionRow,
    { sealed, context }: { sealed: Buffer | null; context: SealContext | EnvContext },
  ): Promise<Sealed<T>> {
    const { SEAL_PRIVATE_KEYS } = this.#context.config;
    if (!SEAL_PRIVATE_KEYS || !sealed) throw new Error('this worker has no SEAL_PRIVATE_KEYS');
    try {
      return await unseal<T>(SEAL_PRIVATE_KEYS, context, sealed);
    } catch (error) {
      if (error instanceof WindlassError) throw error;
      const what = 'credentials could not be decrypted; the session is ended';
      this.#context.log.warn({ err: error, sid: session.sid }, what);
      throw await this.endForChangedHost(session);
    }
  }

  /** Ends the session; the error that tells its user. */
  async endForChangedHost({
    sid,
    hostname,
  }: Pick<SessionRow, 'sid' | 'hostname'>): Promise<WindlassError> {
    await endForChangedHost(this.#context.database.db, sid);
    return hostChanged(hostname);
  }
}

const isHostChangedError = (error: unknown) =>
  error instanceof WindlassError && error.code === 'host_changed';
