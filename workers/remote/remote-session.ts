import type ssh2 from 'ssh2';
import { WindlassError } from '../../shared/errors.ts';
import { openAgent } from './agent/bootstrap.ts';
import type { ExecChannel, RemoteExec } from './agent/channel.ts';
import type { AgentClient } from './agent/client.ts';

/** Channels of one connection at first; sshd's MaxSessions is 10 by default. A refusal lowers it. */
const CHANNELS = 9;
const AGENT_START_MS = 30_000;

export interface AgentSettings {
  spoolLimitBytes: number;
  /** The account's shell, when an earlier connection has learnt it. */
  shell: string | undefined;
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
  readonly #waiting: (() => void)[] = [];
  #isClosed = false;
  /** performance.now() when the connection stood: a lease must have been seen since, before anything is run over it. */
  readonly since = performance.now();

  constructor(client: ssh2.Client, settings: AgentSettings) {
    this.#client = client;
    this.#settings = settings;
    this.closed = new Promise(resolve => {
      client.once('close', () => {
        this.#isClosed = true;
        for (const wake of this.#waiting.splice(0)) wake();
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
        client => client.closed.then(() => this.close()),
        () => {
          if (this.#agent === agent) this.#agent = undefined;
        },
      );
    }
    return this.#agent;
  }

  /** Runs one command; a channel that the server refuses waits until another one closes. */
  async exec(command: string, signal?: AbortSignal): Promise<SshChannel> {
    for (;;) {
      signal?.throwIfAborted();
      if (this.#isClosed) throw lost();
      if (this.#open >= this.#limit) {
        await new Promise<void>(resolve => this.#waiting.push(resolve));
        continue;
      }
      this.#open++;
      try {
        return await this.#openChannel(command);
      } catch (error) {
        this.#release();
        const refused = /open failure|channel open/i.test((error as Error).message);
        if (!refused || this.#isClosed) throw lost(error);
        if (this.#open === 0) {
          throw new WindlassError('remote_connection_failed', {
            detail: 'The host refuses to open a channel.',
            hint: "Raise MaxSessions in the host's sshd_config.",
            cause: error,
          });
        }
        this.#limit = this.#open;
      }
    }
  }

  close(): void {
    this.#client.end();
    this.#client.destroy();
  }

  #openChannel(command: string): Promise<SshChannel> {
    return new Promise((resolve, reject) => {
      const onClose = () => reject(new Error('the connection was lost'));
      this.#client.once('close', onClose);
      this.#client.exec(command, (error, channel) => {
        this.#client.off('close', onClose);
        if (error) return reject(error);
        resolve(toExecChannel(channel, () => this.#release()));
      });
    });
  }

  #release(): void {
    this.#open--;
    this.#waiting.shift()?.();
  }
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

function lost(cause?: unknown): WindlassError {
  return new WindlassError('remote_connection_failed', {
    detail: 'The connection was lost.',
    hint: 'Try again.',
    cause,
  });
}
