import { WindlassError } from '../../shared/errors.ts';
import { EventQueue } from './event-queue.ts';
import type { ExecChannel } from './exec-channel.ts';
import { FlowWindow } from './flow-window.ts';
import { FrameParser } from './framing.ts';
import type { Hello } from './hello.ts';
import { Answers } from './pending-requests.ts';
import { explainFailure, type RunEvent, toEvent } from './run-event.ts';
import { type ListedRun, RunLists } from './run-lists.ts';
import { quoteLine } from './shell-quote.ts';

export interface RunRequest {
  /** Letters, digits and hyphens, like token. */
  id: string;
  /** Names the attempt: the same id and token run once, and asked for again are followed from the start. */
  token: string;
  /** Run by the account's own `$SHELL -c`; at most 128 KiB, as for every argument on Linux. */
  command?: string;
  /** Run by /bin/sh from a file; of any length. */
  script?: string;
}

interface Follow {
  id: string;
  queue: EventQueue<RunEvent>;
  /** What the caller has acknowledged, and how much of it the agent was told. */
  acked: { stdout: number; stderr: number };
  told: number;
}

/** Each acknowledgement costs the host some milliseconds: small ones wait for company, but not long. */
const ACK_BYTES = 2 ** 20;
const ACK_DELAY_MS = 50;
/** Unread events of one run, in bytes: far more than an agent of ours sends, and what calls itself one is cut off. */
const MOST_UNREAD = 64 << 20;
/** What an event counts beside its bytes: there must not be so many either that taking them one by one is slow. */
const EVENT_BYTES = 1_000;

/**
 * One serving agent on a host. Runs outlive it: when the channel is lost every iterator and promise rejects with
 * `remote_connection_failed`, and another client follows the runs.
 * The agent sends at most 16 MiB of a run past what `ack` has named, which bounds what an unread iterator holds, and of
 * all runs together what the link brings in about a second: so long at most an answer or a short line takes.
 */
export class AgentClient {
  readonly hello: Hello;
  /** Resolves when the agent or the channel to it has ended, for whatever reason. */
  readonly closed: Promise<void>;
  readonly #channel: ExecChannel;
  readonly #follows = new Map<number, Follow>();
  readonly #answers: Answers;
  readonly #window = new FlowWindow();
  readonly #lists = new RunLists();
  #heardAt = performance.now();
  /** Of requests and of what is followed alike: each has a number of its own. */
  #lastNumber = 0;
  #ackTimer: NodeJS.Timeout | undefined;
  #failure: WindlassError | undefined;

  /** Made by openAgent, when the channel's next byte is the first after the hello. */
  constructor(channel: ExecChannel, hello: Hello) {
    this.#channel = channel;
    this.hello = hello;
    const heardAt = () => this.#heardAt;
    this.#answers = new Answers({
      get heardAt() {
        return heardAt();
      },
      ping: () => void this.ping().catch(() => {}),
      fail: cause => this.#fail(cause),
    });
    const parser = new FrameParser({
      onLine: line => this.#takeLine(line),
      onData: ({ run, ...output }) => {
        this.#allowMore(output.bytes.length);
        const follow = this.#follows.get(run);
        if (follow) give(follow, { type: 'output', ...output });
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
   * Starts a run unless any attempt has started it before, and follows it from its first byte.
   * The iterator ends after a terminal event (absent, taken, ended, stopped, lost) and is read once.
   * Rejects with `invalid_input` (a NUL in the text), `remote_disk_full`, `agent_problem` (nothing was started).
   */
  run(request: RunRequest): AsyncIterableIterator<RunEvent> {
    const text = request.command ?? request.script ?? '';
    const mode = request.command === undefined ? 's' : 'c';
    const id = checkName(request.id);
    const line = `${id} ${checkName(request.token)} ${mode} ${quoteLine(text)}`;
    return this.#startFollow({ id }, handle => `run ${handle} ${line}`);
  }

  /** Follows a run from these offsets, in bytes, each the end of what is stored; events as of run. */
  follow(from: { id: string; stdout: number; stderr: number }): AsyncIterableIterator<RunEvent> {
    const { id, stdout, stderr } = from;
    checkName(id);
    return this.#startFollow(from, handle => `follow ${handle} ${id} ${stdout} ${stderr}`);
  }

  /**
   * Says that the bytes below these offsets are stored: the host deletes them and sends as many more. Cheap to call
   * often: what is small is gathered for 50 ms. Without effect once the run's end has been told: then forget it.
   */
  ack(id: string, stdout: number, stderr: number): void {
    for (const [handle, follow] of this.#follows) {
      if (follow.id !== id) continue;
      follow.acked = { stdout, stderr };
      if (stdout + stderr - follow.told >= ACK_BYTES) this.#tellAck(handle, follow);
      else this.#ackTimer ??= setTimeout(() => this.#tellAcks(), ACK_DELAY_MS);
    }
  }

  /**
   * Ends every process of a run and resolves when none is left, after 6 s at most; its iterators then see it end.
   * how: `mark` (all found by their environment or session, now or by an earlier stop), `group` (the host has no /proc),
   * `left` (some would not die), `never` (it had not started and now never will), or `ended` (by itself), `stopped`:
   * nothing to be done. `wrong_node`: only an agent on `node`, another one of this home directory, can stop it.
   */
  async stop(id: string): Promise<{ how: string; node?: string }> {
    const answer = await this.#ask('stop', 'halted', checkName(id));
    const [how = '', ...node] = answer.split(' ');
    return node.length > 0 ? { how, node: node.join(' ') } : { how };
  }

  /** Removes a run that has ended from the host; `conflict` while it may still live. Unknown ids are no error. */
  async forget(id: string): Promise<void> {
    const busy = await this.forgetAll([id]);
    if (busy.length > 0)
      throw new WindlassError('conflict', { detail: `run ${id} has not ended.` });
  }

  /** As forget(), some hundred at most; returns those that may still live and are kept. */
  async forgetAll(ids: string[]): Promise<string[]> {
    if (ids.length === 0) return [];
    const kept = await this.#ask('forget', 'forgot', ids.map(checkName).join(' '));
    const places = kept.split(' ').map(Number);
    return ids.filter((_, n) => places.includes(n + 1));
  }

  /** The host's ffmpeg and which of libx264, libvpx-vp9, libvpx and libopenh264 it has; null where there is none. */
  async ffmpeg(): Promise<{ path: string; encoders: string[] } | null> {
    const answer = await this.#ask('ffmpeg', 'ffmpeg');
    const [encoders = '-', ...path] = answer.split(' ');
    if (path.join(' ') === '-') return null;
    return { path: path.join(' '), encoders: encoders === '-' ? [] : encoders.split(',') };
  }

  /** The runs that the host keeps, some at a time, in the order of their ids; those that begin or end meanwhile, perhaps. */
  list(): AsyncGenerator<ListedRun[], void> {
    return this.#lists.read(
      () => this.#nextNumber(),
      (number, from) => this.#askAs(number, 'list', 'listed', `${from}`),
    );
  }

  async ping(): Promise<void> {
    await this.#ask('ping', 'pong');
  }

  /** performance.now() when the last byte came, or the client was made. */
  get heardAt(): number {
    return this.#heardAt;
  }

  /** Ends the agent, never the runs. `closed` tells when the channel is gone too. */
  close(): void {
    this.#fail();
    this.#channel.stdin.end();
  }

  #tellAcks(): void {
    this.#ackTimer = undefined;
    for (const [handle, follow] of this.#follows) this.#tellAck(handle, follow);
  }

  #tellAck(handle: number, follow: Follow): void {
    const { stdout, stderr } = follow.acked;
    if (stdout + stderr === follow.told) return;
    follow.told = stdout + stderr;
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
      this.#follows.set(handle, { id, queue, acked: { stdout, stderr }, told: stdout + stderr });
      this.#write(request(handle));
    }
    return queue;
  }

  #nextNumber(): number {
    return ++this.#lastNumber;
  }

  /** What follows the answering word and the request's number. */
  #ask(verb: string, answer: string, rest = ''): Promise<string> {
    return this.#askAs(this.#nextNumber(), verb, answer, rest);
  }

  #askAs(number: number, verb: string, answer: string, rest: string): Promise<string> {
    if (this.#failure) return Promise.reject(this.#failure);
    const answered = this.#answers.await(`${answer} ${number}`);
    this.#write(`${verb} ${number} ${rest}`.trimEnd());
    return answered;
  }

  #allowMore(received: number): void {
    const more = this.#window.take(received, this.#heardAt);
    if (more) this.#write(`credit ${more.total} ${more.piece}`);
  }

  #write(line: string): void {
    if (!this.#failure) this.#channel.stdin.write(`${line}\n`);
  }

  #takeLine(line: string): void {
    const [verb = '', name = '', ...rest] = line.split(' ');
    if (verb === 'item') this.#lists.take(Number(name), rest);
    if (verb === 'item' || this.#answers.take(line)) return;
    const follow = this.#follows.get(Number(name));
    if (!follow) return;
    if (verb === 'failed') {
      this.#follows.delete(Number(name));
      follow.queue.fail(explainFailure(rest[0]));
      return;
    }
    const event = toEvent(verb, rest);
    give(follow, event);
    if (event.type === 'running') return;
    this.#follows.delete(Number(name));
    follow.queue.finish();
  }

  #fail(cause?: unknown): void {
    if (this.#failure) return;
    this.#failure = new WindlassError('remote_connection_failed', {
      detail: 'the agent is no longer reached.',
      cause,
    });
    for (const { queue } of this.#follows.values()) queue.fail(this.#failure);
    this.#answers.fail(this.#failure);
    clearTimeout(this.#ackTimer);
    this.#follows.clear();
    if (cause !== undefined) this.#channel.destroy();
  }
}

/** Throws where the agent sends more than it was allowed. */
function give({ queue }: Follow, event: RunEvent): void {
  queue.push(event, EVENT_BYTES + (event.type === 'output' ? event.bytes.length : 0));
  if (queue.bytes > MOST_UNREAD) throw new Error('The agent sent more than it was allowed.');
}

function checkName(name: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9-]{0,99}$/.test(name)) {
    throw new WindlassError('invalid_input', { detail: `not a run's id or token: ${name}` });
  }
  return name;
}
