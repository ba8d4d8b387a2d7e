import { WindlassError } from '../../../shared/errors/errors.ts';

interface PendingRequest {
  resolve(answer: string): void;
  reject(error: unknown): void;
}

/** The channel over which answers arrive. */
export interface AnswerChannel {
  /** performance.now() of the last byte received. */
  heardAt(): number;
  ping(): void;
  fail(cause: Error): void;
}

/** The channel has failed if nothing arrives for so long while a request is pending. */
const SILENCE_MS = 60_000;
const CHECK_MS = 30_000;
/**
 * Limit for one answer while the channel is alive: a long list on a slow network drive, or a large process tree to
 * kill.
 */
const ANSWER_MS = 600_000;

/**
 * Matches answers to requests by WORD NUMBER and ignores late ones. A request that times out fails alone; the channel
 * fails if it is silent, or if a ping times out.
 */
export class PendingRequests {
  readonly #pending = new Map<string, PendingRequest>();
  readonly #channel: AnswerChannel;

  constructor(channel: AnswerChannel) {
    this.#channel = channel;
  }

  /** Resolves with the rest of the line that begins with these two words. */
  await(answer: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const askedAt = performance.now();
      const isPing = answer.startsWith('pong ');
      const check = () => {
        const now = performance.now();
        const isOverdue = now - askedAt >= ANSWER_MS;
        if (now - this.#channel.heardAt() >= SILENCE_MS || (isOverdue && isPing))
          return this.#channel.fail(new Error(`The agent did not answer "${answer}".`));
        if (isOverdue) {
          this.#pending.delete(answer);
          const detail = `the agent did not answer within ${ANSWER_MS / 60_000} minutes (${answer}).`;
          return reject(new WindlassError('remote_connection_failed', { detail }));
        }
        if (!isPing) this.#channel.ping();
        timer = setTimeout(check, CHECK_MS);
      };
      let timer = setTimeout(check, CHECK_MS);
      this.#pending.set(answer, {
        resolve: text => {
          clearTimeout(timer);
          resolve(text);
        },
        reject: error => {
          clearTimeout(timer);
          reject(error);
        },
      });
    });
  }

  /** Resolves the request that this line answers; false if there is none. */
  take(line: string): boolean {
    const answer = line.split(' ', 2).join(' ');
    const request = this.#pending.get(answer);
    if (!request) return false;
    this.#pending.delete(answer);
    request.resolve(line.slice(answer.length + 1));
    return true;
  }

  failAll(error: unknown): void {
    const all = [...this.#pending.values()];
    this.#pending.clear();
    for (const request of all) request.reject(error);
  }
}
