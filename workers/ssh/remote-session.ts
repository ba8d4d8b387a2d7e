import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type ssh2 from 'ssh2';
import { WindlassError } from '../../shared/errors/errors.ts';
import { abortableOpen } from '../../shared/process/abort.ts';
import type { Startup } from '../../shared/ssh/startup-files.ts';
import { openAgent } from '../host-agent/bootstrap.ts';
import type { AgentClient } from '../host-agent/client.ts';
import type { RemoteExec } from '../host-agent/exec-channel.ts';
import { NoAnswer } from '../host-agent/no-answer.ts';
import type { CommandDefaults } from '../runs/command-defaults.ts';
import { channelRefused, channelRefusedBesideAgent, RefusalGrace } from './channel-refusals.ts';
import type { Connection } from './log-in.ts';
import { type SshChannel, toExecChannel } from './ssh-channel.ts';
import { UnclosedChannels } from './unclosed-channels.ts';

/** Channels of one connection; sshd's MaxSessions is 10 by default. A refusal lowers the limit for a while. */
const MAX_CHANNELS = 9;
const LOWERED_MS = 10_000;
const REFUSED_PAUSE_MS = 100;
/**
 * How long the server may take to open a channel and accept its command. After that the connection counts as lost: at once
 * if less than BUSY_BYTES arrived over it meanwhile, otherwise after several such periods: on a slow link much may precede
 * the answer.
 */
const OPEN_MS = 20_000;
const MAX_OPEN_PERIODS = 6;
const BUSY_BYTES = 65_536;
const AGENT_START_MS = 25_000;
/** An agent that sends nothing for so long, not even the answer to a ping, is dead; its connection is closed. */
const PING_MS = 30_000;

export interface SessionSettings {
  spoolLimitBytes: number;
  /** The account's shell, if an earlier connection has found it. */
  shell: string | undefined;
  /** How commands are run: `once` by default. */
  startup?: Startup;
  /** The variables of all commands. Default: none. */
  env?: Record<string, string>;
  /** Called with the account's shell when the agent has started. */
  onShell?(shell: string): void;
  /** How long the server may take to open a channel. Default 20,000. */
  openMs?: number;
  /** How long a refusal lowers the limit of channels. Default 10,000. */
  loweredMs?: number;
  /** How long the host may take to close a channel. Default 10,000. */
  closeMs?: number;
}

/** One SSH connection of a session: plain exec channels, and the agent's control channel where the session has one. */
export class RemoteSession implements RemoteExec {
  readonly #client: ssh2.Client;
  readonly #settings: SessionSettings;
  readonly closed: Promise<void>;
  /** Resolves when the host leaves a channel open that was given up: who needs a channel is to have another connection. */
  readonly hung: Promise<void>;
  readonly #unclosed: UnclosedChannels;
  #agent: Promise<AgentClient> | undefined;
  #channelLimit = MAX_CHANNELS;
  #openChannels = 0;
  /** What wakes those who wait for a channel. */
  readonly #waiting = new Set<() => void>();
  /** Called when the connection closes. One listener on the client for each channel would exceed its limit of listeners. */
  readonly #closeListeners = new Set<() => void>();
  #isClosed = false;
  #hasSftp = false;
  /** The agent's control channel is open. */
  #isServing = false;
  /** performance.now() when the connection was made. A lease must have been confirmed after that to run anything over it. */
  readonly connectedAt = performance.now();

  /** What the host said at the login. */
  readonly banner: string;

  constructor({ client, banner }: Connection, settings: SessionSettings) {
    this.#client = client;
    this.banner = banner;
    this.#settings = settings;
    this.closed = new Promise(resolve => {
      client.once('close', () => {
        this.#isClosed = true;
        this.#wakeAll();
        for (const onClose of [...this.#closeListeners]) onClose();
        resolve();
      });
    });
    let onHung = () => {};
    this.hung = new Promise(resolve => {
      onHung = resolve;
    });
    const onUnclosed = () => {
      onHung();
      this.#wakeAll();
    };
    this.#unclosed = new UnclosedChannels(onUnclosed, settings.closeMs);
    client.on('error', () => client.destroy());
  }

  /** How its commands are run. */
  get defaults(): CommandDefaults {
    const { startup = 'once', env = {} } = this.#settings;
    return { startup, env };
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether the host leaves a channel open that was given up. */
  get isHung(): boolean {
    return this.#unclosed.count > 0;
  }

  /** The agent of this connection, started once. Its control channel stays open as long as the connection. */
  agent(): Promise<AgentClient> {
    if (!this.#agent) {
      const agent = openAgent(this, { timeoutMs: AGENT_START_MS, ...this.#settings });
      this.#agent = agent;
      agent.then(
        client => {
          this.#isServing = true;
          this.#wakeAll();
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
   * Runs one command. Above the limit of channels, or after the server's refusal, it waits until another channel closes.
   * `before` is called just before each request for the channel.
   */
  async exec(
    command: string,
    signal?: AbortSignal,
    before: () => Promise<void> = async () => {},
  ): Promise<SshChannel> {
    return this.#retryRefused(signal, async () => {
      await before();
      signal?.throwIfAborted();
      return this.#awaitChannel({ sent: true }, done => {
        this.#client.exec(command, (error, channel) => {
          if (error)
            return done(new SshError(error.message, { sent: !isRefusal(error), cause: error }));
          this.#unclosed.watch(channel);
          const exec = toExecChannel(channel, () => this.#releaseChannel());
          done(undefined, exec);
        });
      });
    });
  }

  /** SFTP over a channel of its own (draft-ietf-secsh-filexfer-02); end() closes the channel. */
  async sftp(signal?: AbortSignal): Promise<ssh2.SFTPWrapper> {
    return this.#retryRefused(signal, () =>
      this.#awaitChannel({ sent: false }, done => {
        this.#client.sftp((error, sftp) => {
          if (error) return done(new SftpError(error.message, { sent: false, cause: error }));
          this.#unclosed.watch(sftp);
          sftp.on('error', () => sftp.end());
          sftp.once('close', () => this.#releaseChannel());
          done(undefined, sftp);
        });
      }),
    );
  }

  /** Throws `sftp_unavailable` where the host has no SFTP for the account. Asks once a connection. */
  async requireSftp(signal: AbortSignal): Promise<void> {
    if (this.#hasSftp) return;
    (await abortableOpen(this.sftp(signal), signal, late => late.end())).end();
    this.#hasSftp = true;
  }

  /** Opens a channel when one is free, and again after each refusal. */
  async #retryRefused<T>(signal: AbortSignal | undefined, open: () => Promise<T>): Promise<T> {
    const grace = new RefusalGrace();
    for (;;) {
      await this.#reserveChannel(signal);
      try {
        return await open();
      } catch (error) {
        this.#releaseChannel();
        if (error instanceof SftpError && !this.#isClosed && !isRefusal(error))
          throw sftpUnavailable(error);
        if (!isRefusal(error) || this.#isClosed)
          throw error instanceof SshError ? connectionLost(error) : error;
        await this.#waitAfterRefusal(error, grace, signal);
      }
    }
  }

  /** Closes the connection of an agent that hangs, say on a home directory that went away: sshd lives on then. */
  #watch(client: AgentClient): void {
    let isPinging = false;
    let checkedAt = performance.now();
    const timer = setInterval(() => {
      if (isPinging && client.heardAt < checkedAt) return this.close();
      checkedAt = performance.now();
      if (isPinging) return;
      isPinging = true;
      const onPong = () => {
        isPinging = false;
      };
      client.ping().then(onPong, () => {});
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

  /** The server's answer to a request for a channel. A server that does not answer loses its connection. */
  #awaitChannel<T>(
    { sent }: { sent: boolean },
    ask: (done: (error: SshError | undefined, value?: T) => void) => void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const onClose = () => settle(new SshError('The connection was lost.', { sent }));
      const { openMs = OPEN_MS } = this.#settings;
      let periods = 0;
      let before = bytesReceived(this.#client);
      const check = () => {
        const now = bytesReceived(this.#client);
        if (++periods < MAX_OPEN_PERIODS && now - before > BUSY_BYTES) {
          before = now;
          timer = setTimeout(check, openMs);
          return;
        }
        const waited = `within ${(periods * openMs) / 1_000} s`;
        const cause = new NoAnswer();
        settle(new SshError(`The host opened no channel ${waited}.`, { sent, cause }));
        this.close();
      };
      let timer = setTimeout(check, openMs);
      const settle = (error: SshError | undefined, value?: T) => {
        clearTimeout(timer);
        this.#closeListeners.delete(onClose);
        if (error) reject(error);
        else resolve(value as T);
      };
      this.#closeListeners.add(onClose);
      try {
        ask(settle);
      } catch (cause) {
        // ssh2 throws synchronously when the connection is gone.
        settle(new SshError('The connection was lost.', { sent: false, cause }));
      }
    });
  }

  async #reserveChannel(signal?: AbortSignal): Promise<void> {
    while (!this.#hasFreeChannel() && !this.#isClosed && !signal?.aborted) {
      const { count } = this.#unclosed;
      if (count >= this.#openChannels - this.#lastingChannels) throw channelsHang(count);
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
    // Whoever was woken and leaves wakes the next one.
    if (signal?.aborted) this.#wakeOne();
    signal?.throwIfAborted();
    if (this.#isClosed) throw connectionLost();
    this.#openChannels++;
  }

  /**
   * The agent's channel never closes while the connection lasts: whoever waited for that would wait for nothing, so one
   * channel beside it may always be asked for.
   */
  #hasFreeChannel(): boolean {
    return this.#openChannels < Math.max(this.#channelLimit, this.#lastingChannels + 1);
  }

  get #lastingChannels(): number {
    return this.#isServing ? 1 : 0;
  }

  #releaseChannel(): void {
    this.#openChannels--;
    this.#wakeOne();
  }

  #wakeOne(): void {
    const [first] = this.#waiting;
    first?.();
  }

  #wakeAll(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** Lowers the limit to what is open, for a while. Where nothing is open, the server is asked again until the grace is over. */
  async #waitAfterRefusal(
    refusal: unknown,
    grace: RefusalGrace,
    signal?: AbortSignal,
  ): Promise<void> {
    if (this.#openChannels <= this.#lastingChannels) {
      if (grace.isOver())
        throw this.#isServing ? channelRefusedBesideAgent(refusal) : channelRefused(refusal);
      return delay(REFUSED_PAUSE_MS, undefined, { signal }).catch(() => {});
    }
    grace.reset();
    this.#channelLimit = this.#openChannels;
    // Servers other than sshd may count the channels of all connections: the limit may rise when others close.
    setTimeout(() => {
      this.#channelLimit = MAX_CHANNELS;
      this.#wakeAll();
    }, this.#settings.loweredMs ?? LOWERED_MS).unref();
  }
}

/** An error of ssh2 about a channel or the connection. */
export class SshError extends Error {
  /** The command may have reached the host. */
  readonly sent: boolean;

  constructor(message: string, { sent, cause }: { sent: boolean; cause?: unknown }) {
    super(message, { cause });
    this.sent = sent;
  }
}

/** The server's answer to a request for SFTP, or what came in the place of SFTP. */
class SftpError extends SshError {}

function sftpUnavailable(cause: SftpError): WindlassError {
  return new WindlassError('sftp_unavailable', {
    detail: `the host offers no SFTP to this account (${cause.message}).`,
    hint: "Have the sftp subsystem enabled in the host's sshd_config. Commands work without it.",
    cause,
  });
}

/** Whether the command of a failed exec() may have reached the host: not if the channel was refused or never requested. */
export function mayHaveBeenSent(error: unknown): boolean {
  return error instanceof WindlassError && error.cause instanceof SshError && error.cause.sent;
}

/** Bytes that have come over a connection so far, which ssh2 does not tell. */
function bytesReceived(client: ssh2.Client): number {
  const { _sock: socket } = client as unknown as { _sock?: Socket };
  return socket?.bytesRead ?? 0;
}

/** RFC 4254, 5.1: the server refused the channel; the connection is good. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && /open failure|channel open/i.test(error.message);
}

/** No channel becomes free: each one was given up. */
const channelsHang = (count: number) =>
  new WindlassError('remote_connection_failed', {
    detail: `The host does not close ${count} channels, and opens no more.`,
    hint: 'Programs hang there, such as on a disk that does not answer. Try again, or log in again.',
  });

function connectionLost(cause?: SshError): WindlassError {
  return new WindlassError('remote_connection_failed', {
    detail: cause?.message ?? 'The connection was lost.',
    hint: 'Try again.',
    cause,
  });
}
