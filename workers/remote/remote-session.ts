import type ssh2 from 'ssh2';
import { WindlassError } from '../../shared/errors.ts';
import { openAgent } from './agent/bootstrap.ts';
import type { ExecChannel, RemoteExec } from './agent/channel.ts';
import type { AgentClient } from './agent/client.ts';

/** Channels of one connection at first; sshd's MaxSessions is 10 by default. A refusal lowers it. */
const CHANNELS = 9;
const LIMIT_LASTS_MS = 10_000;
/** Until the server has opened a channel and taken its command. A connection that does not is as good as lost. */
const OPEN_MS = 20_000;
const AGENT_START_MS = 30_000;
/** An agent that does not answer within so long is taken for dead, and its connection with it. */
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

/** An exec channel of ssh2, which can also pass signals on to its command. */
export interface SshChannel extends ExecChannel {
  signal(name: 'TERM' | 'KILL'): void;
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
  #isClosed = false;
  /** performance.now() when the connection stood: a lease must have been seen since, before anything is run over it. */
  readonly since = performance.now();

  constructor(client: ssh2.Client, settings: AgentSettings) {
    this.#client = client;
    this.#settings = settings;
    this.closed = new Promise(resolve => {
      client.once('close', () => {
        this.#isClosed = true;
        for (const wake of [...this.#waiting]) wake();
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
        this.#lowerLimit(error);
      }
    }
  }

  /** SFTP over a channel of its own (draft-ietf-secsh-filexfer-02); end() gives the channel back. */
  async sftp(signal?: AbortSignal): Promise<ssh2.SFTPWrapper> {
    for (;;) {
      await this.#takeSlot(signal);
      try {
        return await this.#openSftp();
      } catch (error) {
        this.#release();
        if (!isRefusal(error) || this.#isClosed)
          throw error instanceof SshError ? lost(error) : error;
        this.#lowerLimit(error);
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
    let answered = true;
    const timer = setInterval(() => {
      if (!answered) return this.close();
      answered = false;
      client.ping().then(
        () => {
          answered = true;
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
      const timer = setTimeout(() => {
        settle(new SshError(`The host opened no channel within ${openMs / 1_000} s.`, { sent }));
        this.close();
      }, openMs);
      const settle = (error: SshError | undefined, value?: T) => {
        clearTimeout(timer);
        this.#client.off('close', onClose);
        if (error) reject(error);
        else resolve(value as T);
      };
      this.#client.once('close', onClose);
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

  /** Others of the account may have taken the server's channels: the limit is forgotten after a while. */
  #lowerLimit(refusal: unknown): void {
    const kept = this.#agent ? 1 : 0;
    if (this.#open <= kept) {
      throw new WindlassError('remote_connection_failed', {
        detail: 'The host refuses to open another channel.',
        hint: "Raise MaxSessions in the host's sshd_config.",
        cause: refusal,
      });
    }
    this.#limit = this.#open;
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

function toExecChannel(channel: ssh2.ClientChannel, release: () => void): SshChannel {
  const closed = new Promise<{ code: number | null; signal: string | null }>(resolve => {
    let code: number | null = null;
    let signal: string | null = null;
    channel.on('exit', (exitCode: number | null, exitSignal?: string) => {
      code = exitCode ?? null;
      signal = exitSignal ?? null;
    });
    channel.once('close', () => {
      release();
      resolve({ code, signal });
    });
  });
  channel.on('error', () => channel.destroy());
  return {
    stdin: channel,
    stdout: channel,
    stderr: channel.stderr,
    closed,
    destroy: () => {
      // Bytes that nobody reads would hold back the channel's close for ever.
      channel.resume();
      channel.stderr.resume();
      channel.destroy();
    },
    signal: name => {
      // The channel may be gone already: then so is what was to be signalled.
      if (channel.writable) channel.signal(name);
    },
  };
}

function lost(cause?: SshError): WindlassError {
  return new WindlassError('remote_connection_failed', {
    detail: cause?.message ?? 'The connection was lost.',
    hint: 'Try again.',
    cause,
  });
}
