import type ssh2 from 'ssh2';
import { abortableOpen } from '../../shared/process/abort.ts';
import type { Startup } from '../../shared/ssh/startup-files.ts';
import { openAgent } from '../host-agent/bootstrap.ts';
import type { AgentClient } from '../host-agent/client.ts';
import type { RemoteExec } from '../host-agent/exec-channel.ts';
import { awaitChannel, type ChannelOpening } from './await-channel.ts';
import { ChannelLimit } from './channel-limit.ts';
import type { CommandDefaults } from './command-defaults.ts';
import type { Connection } from './log-in.ts';
import { type SshChannel, toExecChannel } from './ssh-channel.ts';
import { SftpError, toExecError } from './ssh-errors.ts';
import { UnclosedChannels } from './unclosed-channels.ts';
import { watchAgent } from './watch-agent.ts';

const AGENT_START_MS = 25_000;

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

/** One SSH connection of a session: plain exec channels, and the agent's control channel if it has one. */
export class RemoteSession implements RemoteExec {
  readonly #client: ssh2.Client;
  readonly #settings: SessionSettings;
  readonly closed: Promise<void>;
  /** Resolves when the host keeps a channel open that was given up: new channels then need another connection. */
  readonly hung: Promise<void>;
  readonly #unclosed: UnclosedChannels;
  #agent: Promise<AgentClient> | undefined;
  readonly #channels: ChannelLimit;
  readonly #opening: ChannelOpening;
  #hasSftp = false;
  /** performance.now() when connected. To run anything, a lease must have been confirmed after it. */
  readonly connectedAt = performance.now();

  /** What the host said at the login. */
  readonly banner: string;

  constructor({ client, banner }: Connection, settings: SessionSettings) {
    this.#client = client;
    this.banner = banner;
    this.#settings = settings;
    this.closed = new Promise(resolve => {
      client.once('close', () => {
        this.#channels.close();
        for (const onClose of [...this.#opening.closeListeners]) onClose();
        resolve();
      });
    });
    let onHung = () => {};
    this.hung = new Promise(resolve => {
      onHung = resolve;
    });
    const onUnclosed = () => {
      onHung();
      this.#channels.wakeAll();
    };
    this.#unclosed = new UnclosedChannels(onUnclosed, settings.closeMs);
    this.#channels = new ChannelLimit({
      countUnclosed: () => this.#unclosed.count,
      loweredMs: settings.loweredMs,
    });
    this.#opening = { openMs: settings.openMs, closeListeners: new Set() };
    client.on('error', () => client.destroy());
  }

  /** How its commands are run. */
  get defaults(): CommandDefaults {
    const { startup = 'once', env = {} } = this.#settings;
    return { startup, env };
  }

  get isClosed(): boolean {
    return this.#channels.isClosed;
  }

  /** Whether the host leaves a channel open that was given up. */
  get isHung(): boolean {
    return this.#unclosed.count > 0;
  }

  /** The agent of this connection, started once; its channel stays open as long as the connection. */
  agent(): Promise<AgentClient> {
    if (!this.#agent) {
      const agent = openAgent(this, { timeoutMs: AGENT_START_MS, ...this.#settings });
      this.#agent = agent;
      agent.then(
        client => {
          this.#channels.keepAgentChannel();
          this.#settings.onShell?.(client.hello.shell);
          watchAgent(client, () => this.close());
        },
        () => {
          if (this.#agent === agent) this.#agent = undefined;
        },
      );
    }
    return this.#agent;
  }

  /**
   * Runs one command. At the limit of channels, or after a refusal, it waits until another channel closes. `before` is
   * called just before each request.
   */
  async exec(
    command: string,
    signal?: AbortSignal,
    before: () => Promise<void> = async () => {},
  ): Promise<SshChannel> {
    return this.#channels.open(signal, async () => {
      await before();
      signal?.throwIfAborted();
      return awaitChannel(this.#client, { ...this.#opening, sent: true }, done => {
        this.#client.exec(command, (error, channel) => {
          if (error) return done(toExecError(error));
          this.#unclosed.watch(channel);
          const exec = toExecChannel(channel, () => this.#channels.release());
          done(undefined, exec);
        });
      });
    });
  }

  /** SFTP over a channel of its own (draft-ietf-secsh-filexfer-02); end() closes the channel. */
  async sftp(signal?: AbortSignal): Promise<ssh2.SFTPWrapper> {
    return this.#channels.open(signal, () =>
      awaitChannel(this.#client, { ...this.#opening, sent: false }, done => {
        this.#client.sftp((error, sftp) => {
          if (error) return done(new SftpError(error.message, { sent: false, cause: error }));
          this.#unclosed.watch(sftp);
          sftp.on('error', () => sftp.end());
          sftp.once('close', () => this.#channels.release());
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

  close(): void {
    this.#client.end();
    this.#client.destroy();
  }
}
