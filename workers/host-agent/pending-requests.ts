import { WindlassError } from '../../shared/errors.ts';

interface Question {
  resolve(answer: string): void;
  reject(error: unknown): void;
}

/** The channel that answers come over. */
export interface AnsweringLink {
  /** performance.now() when it last brought a byte. */
  readonly heardAt: number;
  /** Has the agent say something, if it lives. */
  ping(): void;
  fail(cause: Error): void;
}

/** A link that brings nothing for so long, though something was asked, has failed. */
const SILENCE_MS = 60_000;
const LOOK_MS = 30_000;
/** For an answer of a host that gives signs of life: a list of many runs on a slow network drive, a tree slow to die. */
const ANSWER_MS = 600_000;

/**
 * Requests that wait for their answers. The first two words of an answer, WORD NUMBER, are those of one request alone:
 * what comes when nobody waits for it any more is nobody else's. A request that is not answered in time fails alone; a
 * link that is silent fails whole, and so does one that brings all but the answers to its pings.
 */
export class Answers {
  readonly #waiting = new Map<string, Question>();
  readonly #link: AnsweringLink;

  constructor(link: AnsweringLink) {
    this.#link = link;
  }

  /** The rest of the line that begins with these two words. */
  await(answer: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const askedAt = performance.now();
      const isPing = answer.startsWith('pong ');
      const look = () => {
        const now = performance.now();
        const isMissing = now - askedAt >= ANSWER_MS;
        if (now - this.#link.heardAt >= SILENCE_MS || (isMissing && isPing))
          return this.#link.fail(new Error(`The agent did not say ${JSON.stringify(answer)}.`));
        if (isMissing) {
          this.#waiting.delete(answer);
          return reject(notAnswered(answer));
        }
        if (!isPing) this.#link.ping();
        timer = setTimeout(look, LOOK_MS);
      };
      let timer = setTimeout(look, LOOK_MS);
      this.#waiting.set(answer, {
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

  /** Gives a line to whom it answers; false where nobody waits for it. */
  take(line: string): boolean {
    const answer = line.split(' ', 2).join(' ');
    const question = this.#waiting.get(answer);
    if (!question) return false;
    this.#waiting.delete(answer);
    question.resolve(line.slice(answer.length + 1));
    return true;
  }

  fail(error: unknown): void {
    const all = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const question of all) question.reject(error);
  }
}

function notAnswered(answer: string): WindlassError {
  return new WindlassError('remote_connection_failed', {
    detail: `the agent did not answer within ${ANSWER_MS / 60_000} minutes (${answer}).`,
  });
}
