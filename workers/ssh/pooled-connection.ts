import type { WindlassError } from '../../shared/errors/errors.ts';
import { abortable } from '../../shared/process/abort.ts';
import { destinationDigest } from '../../shared/ssh/destination.ts';
import type { Hops } from '../../shared/ssh/hops.ts';
import { type Challenge, type LoginDialogue, reconnectRequired } from './login-dialogue.ts';
import type { RemoteSession } from './remote-session.ts';
import type { SessionConnector } from './session-connector.ts';

/** What a login came to: a challenge, or a connection. */
export type LoginStep = { challenge: Challenge } | { challenge?: undefined; wasAsked: boolean };

/** The connection of a session, opened at once. */
export class PooledConnection {
  readonly sid: string;
  /** Present where the login may ask the user. */
  readonly dialogue: LoginDialogue | undefined;
  readonly session: Promise<RemoteSession>;
  /** Like `session`, for callers that did not begin the login: after a refusal the user may try again. */
  readonly shared: Promise<RemoteSession>;
  /** Whether the session has an agent, which never changes. */
  readonly hasAgent: Promise<boolean>;
  readonly #hostname: Promise<string>;
  isConnected = false;
  /** Calls of use() that are under way. */
  users = 0;
  /** performance.now() when the last call of use() ended. */
  usedAt = performance.now();
  /** The hops that it was made for, once known: the versions of their entries, and their destination. */
  madeFor: { versions: string; destination: string } | undefined;
  /** The hops name another destination now: nobody may use the connection any more. */
  hostChanged: WindlassError | undefined;

  /** Not aborted with the job that opens it: others may wait for the same connection. */
  constructor(sid: string, connector: SessionConnector, dialogue?: LoginDialogue) {
    this.sid = sid;
    this.dialogue = dialogue;
    const found = connector.read(sid);
    this.hasAgent = found.then(({ session }) => session.agent);
    this.#hostname = found.then(({ session }) => session.hostname);
    this.#hostname.catch(() => {});
    this.session = found.then(row => connector.connect(row, dialogue));
    this.shared = this.session.catch(async (error: unknown) => {
      if (!dialogue?.wasAsked) throw error;
      throw reconnectRequired(await this.#hostname);
    });
    const setConnected = () => {
      this.isConnected = true;
    };
    this.session.then(setConnected, () => {});
    this.hasAgent.catch(() => {});
    this.shared.catch(() => {});
    const setMadeFor = ({ hops }: { hops: Hops }) => {
      this.madeFor = { versions: versionsOf(hops), destination: destinationDigest(hops) };
    };
    found.then(setMadeFor, () => {});
  }

  /** Whether only its user could open the connection again. */
  get livesWithConnection(): boolean {
    return this.dialogue?.wasAsked === true;
  }

  /** Calls `work` with the connection once that is made. Throws `reconnect_required` where its login waits for its user. */
  async use<T>(signal: AbortSignal, work: (session: RemoteSession) => Promise<T>): Promise<T> {
    this.users++;
    try {
      return await work(await abortable(this.#made(), signal));
    } catch (error) {
      throw this.hostChanged ?? error;
    } finally {
      this.users--;
      this.usedAt = performance.now();
    }
  }

  /**
   * Whether the job may use it: its login is the job's own, or it is made and the host does not hang. The login of an earlier
   * job has other credentials.
   */
  async isUsable(job: string): Promise<boolean> {
    const { session, dialogue } = this;
    if (dialogue?.job === job) return true;
    if (dialogue && !this.isConnected) return false;
    return session.then(
      ({ isHung }) => !isHung,
      () => false,
    );
  }

  /** Waits for the connection, or for what the host asks its user before. */
  untilAsked(signal: AbortSignal): Promise<LoginStep> {
    const { dialogue } = this;
    const done = this.session.then(() => ({ wasAsked: dialogue?.wasAsked ?? false }));
    const asked = dialogue?.next.then(challenge => ({ challenge }));
    return abortable(asked ? Promise.race([done, asked]) : done, signal);
  }

  /** Rejects when the host asks: a job would otherwise keep its slot until the user answers. */
  #made(): Promise<RemoteSession> {
    const { dialogue, shared } = this;
    if (!dialogue || this.isConnected) return shared;
    const refused = dialogue.next.then(async () => {
      throw reconnectRequired(await this.#hostname);
    });
    return Promise.race([shared, refused]);
  }

  close(): void {
    this.dialogue?.cancel();
    this.session.then(open => open.close()).catch(() => {});
  }
}

export const versionsOf = (hops: Hops) => hops.map(({ version }) => version).join();
