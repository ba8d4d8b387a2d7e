import { WindlassError } from '../../shared/errors/errors.ts';
import { EventQueue } from './event-queue.ts';
import type { ExecChannel } from './exec-channel.ts';
import { Demand } from './protocol/demand.ts';
import { FlowWindow } from './protocol/flow-window.ts';
import { FrameParser } from './protocol/framing.ts';
import type { Hello } from './protocol/hello.ts';
import { PendingRequests } from './protocol/pending-requests.ts';
import { type RunEvent, toEvent, toStartError } from './protocol/run-event.ts';
import { type ListedRun, RunLists } from './protocol/run-lists.ts';
import { type StopAnswer, toStopAnswer } from './protocol/stop-answer.ts';
import { quoteLine } from './shell-quote.ts';

export interface RunRequest {
  /** Letters, digits and hyphens, like token. */
  id: string;
  /** Identifies the request: a repeated one follows the run from its first byte. */
  token: string;
  /** For the account's own `$SHELL -c`; at most 128 KiB, Linux's limit for an argument. */
  command?: string;
  /** For a shell that reads it from a file; of any length. */
  script?: string;
  /**
   * /bin/sh, or the account's own shell of the Bourne family. `login` is /bin/sh in the login's environment, before its
   * start-up files; it needs an agent with `startup` `each`.
   */
  reader?: keyof typeof MODE;
}

/** How the agent is asked for a script. */
const MODE = { sh: 's', account: 'a', login: 'l' };

interface Follow {
  id: string;
  queue: EventQueue<RunEvent>;
  /** The offsets that the caller has acknowledged; ackSent is the sum of those sent to the agent. */
  acked: { stdout: number; stderr: number };
  ackSent: number;
}

/** Each acknowledgement costs the host some milliseconds, so small ones are coalesced. */
const ACK_BYTES = 2 ** 20;
const ACK_DELAY_MS = 50;
/** Unread events of one run: far above the agent's window, so only a hostile agent exceeds it. */
const MAX_UNREAD_BYTES = 64 << 20;
/** Each leaves a fence, which is removed only after a ping: see confirmedAt. */
const FORGOTTEN_BEFORE_PING = 250;
/** Counted for each event besides its bytes, which bounds the number of events too. */
const EVENT_OVERHEAD_BYTES = 1_000;

/**
 * A connection to the agent on a host. When its channel is lost, every iterator and promise rejects with
 * `remote_connection_failed`; the runs continue, and another client can follow them. The agent sends at most 16 MiB
 * past the acknowledged offsets of a run, and about a second's worth in all (decision 24).
 */
export class AgentClient {
  readonly hello: Hello;
  /** Resolves when the agent or its channel has ended, for any reason. */
  readonly closed: Promise<void>;
  readonly #channel: ExecChannel;
  readonly #follows = new Map<number, Follow>();
  readonly #requests: PendingRequests;
  readonly #window = new FlowWindow();
  readonly #lists = new RunLists();
  readonly #demand = new Demand(ahead => this.#write(`ahead ${ahead}`));
  #heardAt = performance.now();
  #confirmedAt = performance.now();
  /** Runs that were forgotten since the last ping. */
  #forgotten = 0;
  /** Numbers requests and followed runs alike, so that no two have the same. */
  #lastNumber = 0;
  #ackTimer: NodeJS.Timeout | undefined;
  #failure: WindlassError | undefined;

  /** For openAgent(): the channel's next byte is the first one after the hello. */
  constructor(channel: ExecChannel, hello: Hello) {
    this.#channel = channel;
    this.hello = hello;
    this.#requests = new PendingRequests({
      heardAt: () => this.#heardAt,
      ping: () => void this.ping().catch(() => {}),
      fail: cause => this.#fail(cause),
    });
    const parser = new FrameParser({
      onLine: line => this.#takeLine(line),
      onData: ({ run, ...output }) => {
        this.#grantCredit(output.bytes.length);
        const follow = this.#follows.get(run);
        if (follow) pushEvent(follow, { type: 'output', ...output });
      },
    });
    channel.stdout.on('data', (chunk: Buffer) => {
      this.#heardAt = performance.now();
      try {
        parser.push(chunk);
      } catch (error) {
        this.#fail(error);
      }
    });
    channel.stdout.resume();
    channel.stdout.on('error', error => this.#fail(error));
    channel.stdin.on('error', error => this.#fail(error));
    channel.stderr.on('error', () => {}).resume();
    this.closed = channel.closed.then(() => this.#fail());
  }

  /**
   * Starts a run unless it was started before, and follows it from its first byte. The caller must have read its job's
   * row after `confirmedAt` (decision 2). The iterator can be read once; it ends after absent, crowded, taken, ended,
   * stopped or lost, and throws `invalid_input` (NUL in the text), `remote_disk_full` or `agent_problem` (not started).
   */
  run(request: RunRequest): AsyncIterableIterator<RunEvent> {
    const text = request.command ?? request.script ?? '';
    const mode = request.command !== undefined ? 'c' : MODE[request.reader ?? 'sh'];
    const id = checkName(request.id);
    const line = `${id} ${checkName(request.token)} ${mode} ${quoteLine(text)}`;
    const events = this.#startFollow({ id }, handle => `run ${handle} ${line}`);
    this.#demand.add();
    return events;
  }

  /** Follows a run from these offsets, up to which its output is stored. Events as for run(). */
  follow(from: { id: string; stdout: number; stderr: number }): AsyncIterableIterator<RunEvent> {
    const { id, stdout, stderr } = from;
    checkName(id);
    return this.#startFollow(from, handle => `follow ${handle} ${id} ${stdout} ${stderr}`);
  }

  /**
   * Acknowledges that the bytes below these offsets are stored: the host deletes them and sends as many more. Has no
   * effect after the run's last event: then forget the run.
   */
  ack(id: string, stdout: number, stderr: number): void {
    for (const [handle, follow] of this.#follows) {
      if (follow.id !== id) continue;
      follow.acked = { stdout, stderr };
      if (stdout + stderr - follow.ackSent >= ACK_BYTES) this.#sendAck(handle, follow);
      else this.#ackTimer ??= setTimeout(() => this.#sendAcks(), ACK_DELAY_MS);
    }
  }

  /**
   * Kills every process of a run and resolves when none is left, within about 6 s; its iterators then end. Rejects where the
   * host did not say what it did.
   */
  async stop(id: string): Promise<StopAnswer> {
    return toStopAnswer(await this.#request('stop', 'halted', checkName(id)));
  }

  /** Removes a run that has ended from the host; throws `conflict` while it may be alive. Unknown ids are no error. */
  async forget(id: string): Promise<void> {
    const busy = await this.forgetAll([id]);
    if (busy.length > 0)
      throw new WindlassError('conflict', { detail: `run ${id} has not ended.` });
  }

  /** As forget(), for at most a few hundred runs. Returns those kept because they may be alive. */
  async forgetAll(ids: string[]): Promise<string[]> {
    if (ids.length === 0) return [];
    this.#forgotten += ids.length;
    if (this.#forgotten >= FORGOTTEN_BEFORE_PING) void this.ping().catch(() => {});
    const kept = await this.#request('forget', 'forgot', ids.map(checkName).join(' '));
    const positions = kept.split(' ').map(Number);
    return ids.filter((_, n) => positions.includes(n + 1));
  }

  /** The host's ffmpeg, and which of the encoders for videos it has; null without ffmpeg. */
  async ffmpeg(): Promise<{ path: string; encoders: string[] } | null> {
    const answer = await this.#request('ffmpeg', 'ffmpeg');
    const [encoders = '-', ...path] = answer.split(' ');
    if (path.join(' ') === '-') return null;
    return { path: path.join(' '), encoders: encoders === '-' ? [] : encoders.split(',') };
  }

  /** Pages of the runs on the host, ordered by id. May miss runs that start or end meanwhile. */
  list(): AsyncGenerator<ListedRun[], void> {
    return this.#lists.read(
      () => this.#nextNumber(),
      (number, from) => this.#requestAs(number, 'list', 'listed', `${from}`),
    );
  }

  async ping(): Promise<void> {
    this.#forgotten = 0;
    const number = this.#nextNumber();
    await this.#requestAs(number, 'ping', 'pong', '');
    this.#confirmedAt = performance.now();
    this.#write(`confirm ${number}`);
  }

  /**
   * performance.now() of the last pong, or of the hello. Start a run only if its job was unended after this (decision
   * 2); compare again in the same turn as run().
   */
  get confirmedAt(): number {
    return this.#confirmedAt;
  }

  /** performance.now() of the last byte received, at first of the client's creation. */
  get heardAt(): number {
    return this.#heardAt;
  }

  /** Ends the agent, never the runs. `closed` resolves when the channel has closed too. */
  close(): void {
    this.#fail();
    this.#channel.stdin.end();
  }

  #sendAcks(): void {
    this.#ackTimer = undefined;
    for (const [handle, follow] of this.#follows) this.#sendAck(handle, follow);
  }

  #sendAck(handle: number, follow: Follow): void {
    const { stdout, stderr } = follow.acked;
    if (stdout + stderr === follow.ackSent) return;
    follow.ackSent = stdout + stderr;
    this.#write(`ack ${handle} ${stdout} ${stderr}`);
  }

  #startFollow(
    from: { id: string; stdout?: number; stderr?: number },
    request: (handle: number) => string,
  ): EventQueue<RunEvent> {
    const { id, stdout = 0, stderr = 0 } = from;
    const handle = this.#nextNumber();
    const queue = new EventQueue<RunEvent>(() => {
      this.#follows.delete(handle);
      this.#write(`unfollow ${handle}`);
    });
    if (this.#failure) {
      queue.fail(this.#failure);
    } else {
      this.#follows.set(handle, { id, queue, acked: { stdout, stderr }, ackSent: stdout + stderr });
      this.#write(request(handle));
    }
    return queue;
  }

  #nextNumber(): number {
    return ++this.#lastNumber;
  }

  /** Resolves with what follows WORD NUMBER in the answer. */
  #request(verb: string, answer: string, rest = ''): Promise<string> {
    return this.#requestAs(this.#nextNumber(), verb, answer, rest);
  }

  #requestAs(number: number, verb: string, answer: string, rest: string): Promise<string> {
    if (this.#failure) return Promise.reject(this.#failure);
    const answered = this.#requests.await(`${answer} ${number}`);
    this.#write(`${verb} ${number} ${rest}`.trimEnd());
    return answered;
  }

  #grantCredit(received: number): void {
    const credit = this.#window.receive(received, this.#heardAt);
    if (credit) this.#write(`credit ${credit.total} ${credit.least}`);
  }

  #write(line: string): void {
    if (!this.#failure) this.#channel.stdin.write(`${line}\n`);
  }

  #takeLine(line: string): void {
    const [verb = '', name = '', ...rest] = line.split(' ');
    if (verb === 'item') this.#lists.take(Number(name), rest);
    if (verb === 'item' || this.#requests.take(line)) return;
    const follow = this.#follows.get(Number(name));
    if (!follow) return;
    if (verb === 'failed') {
      this.#follows.delete(Number(name));
      follow.queue.fail(toStartError(rest));
      return;
    }
    const event = toEvent(verb, rest);
    pushEvent(follow, event);
    if (event.type === 'running') return;
    this.#follows.delete(Number(name));
    follow.queue.finish();
  }

  #fail(cause?: unknown): void {
    if (this.#failure) return;
    this.#failure = new WindlassError('remote_connection_failed', {
      detail: 'the connection to the agent was lost.',
      cause,
    });
    for (const { queue } of this.#follows.values()) queue.fail(this.#failure);
    this.#requests.failAll(this.#failure);
    clearTimeout(this.#ackTimer);
    this.#demand.close();
    this.#follows.clear();
    if (cause !== undefined) this.#channel.destroy();
  }
}

/** Throws if the agent exceeds its window. */
function pushEvent({ queue }: Follow, event: RunEvent): void {
  queue.push(event, EVENT_OVERHEAD_BYTES + (event.type === 'output' ? event.bytes.length : 0));
  if (queue.bytes > MAX_UNREAD_BYTES) throw new Error('The agent sent more than its window.');
}

function checkName(name: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9-]{0,99}$/.test(name)) {
    throw new WindlassError('invalid_input', { detail: `not a run's id or token: ${name}` });
  }
  return name;
}
