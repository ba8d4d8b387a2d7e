import { setTimeout as delay } from 'node:timers/promises';
import type ssh2 from 'ssh2';
import { WindlassError } from '../../shared/errors.ts';
import { openAgent } from '../host-agent/bootstrap.ts';
import type { AgentClient } from '../host-agent/client.ts';
import type { RemoteExec } from '../host-agent/exec-channel.ts';
import { bytesReceived } from './bytes-received.ts';
import { noChannel, noChannelBeside, Patience } from './channel-refusals.ts';
import { type SshChannel, toExecChannel } from './ssh-channel.ts';

/** Channels of one connection at first; sshd's MaxSessions is 10 by default. A refusal lowers it. */
const CHANNELS = 9;
const LIMIT_LASTS_MS = 10_000;
const REFUSED_PAUSE_MS = 100;
/**
 * How long the server may take to open a channel and accept its command. After that the connection counts as lost: at once
 * if little else arrives over it, otherwise after several such periods, since on a slow link much may precede the answer.
 */
const OPEN_MS = 20_000;
const OPEN_BEHIND_OTHERS = 6;
const MUCH = 65_536;
const AGENT_START_MS = 30_000;
/** An agent of which nothing comes for so long, not even a ping's answer, is taken for dead, and its connection with it. */
const PING_MS = 30_000;

export interface AgentSettings {
  spoolLimitBytes: number;
  /** The account's shell, when an earlier connection has learnt it. */
  shell: string | undefined;
  /** Told the account's shell once the agent serves. */
  onShell?(shell: string): void;
  /** Default 20,000. */
  openMs?: number;
}

/** One SSH connection of a session: plain exec channels, and the agent's control channel where the session has one. */
export class RemoteSession implements RemoteExec {
  readonly #client: ssh2.Client;
  readonly #settings: AgentSettings;
  readonly closed: Promise<void>;
  #agent: Promise<AgentClient> | undefined;
  #limit = CHANNELS;
  #open = 0;
  readonly #waiting = new Set<() => void>();
  /** Told when the connection closes: listeners of the client's own for each channel would be more than it expects. */
  readonly #opening = new Set<() => void>();
  #isClosed = false;
  /** The agent's control channel is open. */
  #isServing = false;
  /** performance.now() when the connection stood: a lease must have been seen since, before anything is run over it. */
  readonly since = performance.now();

  constructor(client: ssh2.Client, settings: AgentSettings) {
    this.#client = client;
    this.#settings = settings;
    this.closed = new Promise(resolve => {
      client.once('close', () => {
        this.#isClosed = true;
        for (const wake of [...this.#waiting]) wake();
        for (const onClose of [...this.#opening]) onClose();
        resolve();
      });
    });
    client.on('error', () => client.destroy());
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The agent of this connection, started once. The control channel is the first that is opened and never given up. */
  agent(): Promise<AgentClient> {
    if (!this.#agent) {
      const agent = openAgent(this, { timeoutMs: AGENT_START_MS, ...this.#settings });
      this.#agent = agent;
      agent.then(
        client => {
          this.#isServing = true;
          this.#settings.onShell?.(client.hello.shell);
          this.#watch(client);
        },
        () => {
          if (this.#agent === agent) this.#agent = undefined;
        },
      );
    }
    return this.#agent;
  }

  /**
   * Runs one command. A channel that the server refuses, or that is one too many, waits until another one closes.
   * `before` is called when there is room for the channel, each time just before it is asked for.
   */
  async exec(
    command: string,
    signal?: AbortSignal,
    before: () => Promise<void> = async () => {},
  ): Promise<SshChannel> {
    const patience = new Patience();
    for (;;) {
      await this.#takeSlot(signal);
      try {
        await before();
        signal?.throwIfAborted();
        return await this.#openChannel(command);
      } catch (error) {
        this.#release();
        if (!isRefusal(error) || this.#isClosed)
          throw error instanceof SshError ? lost(error) : error;
        await this.#onRefusal(error, patience, signal);
      }
    }
  }

  /** SFTP over a channel of its own (draft-ietf-secsh-filexfer-02); end() gives the channel back. */
  async sftp(signal?: AbortSignal): Promise<ssh2.SFTPWrapper> {
    const patience = new Patience();
    for (;;) {
      await this.#takeSlot(signal);
      try {
        return await this.#openSftp();
      } catch (error) {
        this.#release();
        if (!isRefusal(error) || this.#isClosed)
          throw error instanceof SshError ? lost(error) : error;
        await this.#onRefusal(error, patience, signal);
      }
    }
  }

  #openSftp(): Promise<ssh2.SFTPWrapper> {
    return this.#await({ sent: false }, done => {
      this.#client.sftp((error, sftp) => {
        if (error) return done(new SshError(error.message, { sent: false, cause: error }));
        sftp.on('error', () => sftp.end());
        sftp.once('close', () => this.#release());
        done(undefined, sftp);
      });
    });
  }

  /** A living sshd says nothing of an agent that hangs, on a home directory that went away for instance. */
  #watch(client: AgentClient): void {
    let isAsked = false;
    let lookedAt = performance.now();
    const timer = setInterval(() => {
      if (isAsked && client.heardAt < lookedAt) return this.close();
      lookedAt = performance.now();
      if (isAsked) return;
      isAsked = true;
      client.ping().then(
        () => {
          isAsked = false;
        },
        () => {},
      );
    }, PING_MS);
    void client.closed.then(() => {
      clearInterval(timer);
      this.close();
    });
  }

  close(): void {
    this.#client.end();
    this.#client.destroy();
  }

  #openChannel(command: string): Promise<SshChannel> {
    return this.#await({ sent: true }, done => {
      this.#client.exec(command, (error, channel) => {
        if (!error)
          return done(
            undefined,
            toExecChannel(channel, () => this.#release()),
          );
        done(new SshError(error.message, { sent: !isRefusal(error), cause: error }));
      });
    });
  }

  /** What the server answers to a request for a channel; a server that does not answer is not asked again. */
  #await<T>(
    { sent }: { sent: boolean },
    ask: (done: (error: SshError | undefined, value?: T) => void) => void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const onClose = () => settle(new SshError('The connection was lost.', { sent }));
      const { openMs = OPEN_MS } = this.#settings;
      let looks = 0;
      let before = bytesReceived(this.#client);
      const look = () => {
        const now = bytesReceived(this.#client);
        if (++looks < OPEN_BEHIND_OTHERS && now - before > MUCH) {
          before = now;
          timer = setTimeout(look, openMs);
          return;
        }
        const waited = `within ${(looks * openMs) / 1_000} s`;
        settle(new SshError(`The host opened no channel ${waited}.`, { sent }));
        this.close();
      };
      let timer = setTimeout(look, openMs);
      const settle = (error: SshError | undefined, value?: T) => {
        clearTimeout(timer);
        this.#opening.delete(onClose);
        if (error) reject(error);
        else resolve(value as T);
      };
      this.#opening.add(onClose);
      try {
        ask(settle);
      } catch (cause) {
        // ssh2 throws at once where the connection is gone.
        settle(new SshError('The connection was lost.', { sent: false, cause }));
      }
    });
  }

  async #takeSlot(signal?: AbortSignal): Promise<void> {
    while (this.#open >= this.#limit && !this.#isClosed && !signal?.aborted) {
      await new Promise<void>(resolve => {
        const wake = () => {
          signal?.removeEventListener('abort', wake);
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
        signal?.addEventListener('abort', wake, { once: true });
      });
    }
    signal?.throwIfAborted();
    if (this.#isClosed) throw lost();
    this.#open++;
  }

  #release(): void {
    this.#open--;
    this.#wakeOne();
  }

  #wakeOne(): void {
    const [first] = this.#waiting;
    first?.();
  }

  /** What is open now is all that the server opens, for a while; where nothing is, it is asked again for a moment. */
  async #onRefusal(refusal: unknown, patience: Patience, signal?: AbortSignal): Promise<void> {
    if (this.#open <= (this.#isServing ? 1 : 0)) {
      if (patience.hasEnded())
        throw this.#isServing ? noChannelBeside(refusal) : noChannel(refusal);
      return delay(REFUSED_PAUSE_MS, undefined, { signal }).catch(() => {});
    }
    patience.renew();
    this.#limit = this.#open;
    // Another server than sshd may count the channels of all connections.
    setTimeout(() => {
      this.#limit = CHANNELS;
      this.#wakeOne();
    }, LIMIT_LASTS_MS).unref();
  }
}

/** What ssh2 says of a channel or the connection. */
class SshError extends Error {
  /** The command may have reached the host. */
  readonly sent: boolean;

  constructor(message: string, { sent, cause }: { sent: boolean; cause?: unknown }) {
    super(message, { cause });
    this.sent = sent;
  }
}

/** Whether a failed exec() may have reached the host: not when it was refused, or given up before it was asked for. */
export function mayHaveBeenSent(error: unknown): boolean {
  return error instanceof WindlassError && error.cause instanceof SshError && error.cause.sent;
}

/** RFC 4254, 5.1: the server did not confirm the channel; the connection is well. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && /open failure|channel open/i.test(error.message);
}

function lost(cause?: SshError): WindlassError {
  return new WindlassError('remote_connection_failed', {
    detail: cause?.message ?? 'The connection was lost.',
    hint: 'Try again.',
    cause,
  });
}
