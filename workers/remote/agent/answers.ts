interface Question {
  resolve(answer: string): void;
  reject(error: unknown): void;
}

/** The channel that answers come over. */
export interface AnsweringLink {
  /** performance.now() when it last brought a byte. */
  readonly heardAt: number;
  /** Resolves when the agent has answered everything that it answers at once. */
  ping(): Promise<void>;
  fail(cause: Error): void;
}

/** No answer takes an agent of ours so long, on the slowest of hosts, beside the way there and back. */
const ANSWER_MS = 60_000;

/** Requests that wait for their answers, by the words that these begin with. */
export class Answers {
  readonly #waiting = new Map<string, Set<Question>>();
  readonly #link: AnsweringLink;

  constructor(link: AnsweringLink) {
    this.#link = link;
  }

  /** The rest of the line that begins with these words; the link fails where it is missing. */
  await(answer: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(answer) ?? new Set();
      this.#waiting.set(answer, waiting);
      const look = () => {
        const silence = performance.now() - this.#link.heardAt;
        const missing = new Error(`The agent did not say ${JSON.stringify(answer)}.`);
        if (silence >= ANSWER_MS) return this.#link.fail(missing);
        if (answer === 'pong') {
          timer = setTimeout(look, ANSWER_MS - silence);
          return;
        }
        // A slow link brings it behind much output; what should have come before the answer to a later ping is missing.
        const onPong = () => {
          if (waiting.has(question)) this.#link.fail(missing);
        };
        this.#link.ping().then(onPong, () => {});
      };
      let timer = setTimeout(look, ANSWER_MS);
      const question = {
        resolve: (text: string) => {
          clearTimeout(timer);
          resolve(text);
        },
        reject: (error: unknown) => {
          clearTimeout(timer);
          reject(error);
        },
      };
      waiting.add(question);
    });
  }

  isAwaited(answer: string): boolean {
    return this.#waiting.has(answer);
  }

  /** Gives a line to the first that waits for it; false where none does. */
  take(line: string): boolean {
    const [verb = '', name = ''] = line.split(' ', 2);
    for (const answer of [verb, `${verb} ${name}`]) {
      const waiting = this.#waiting.get(answer);
      const [question] = waiting ?? [];
      if (!waiting || !question) continue;
      waiting.delete(question);
      if (waiting.size === 0) this.#waiting.delete(answer);
      question.resolve(line.slice(answer.length + 1));
      return true;
    }
    return false;
  }

  fail(error: unknown): void {
    const all = [...this.#waiting.values()].flatMap(waiting => [...waiting]);
    this.#waiting.clear();
    for (const question of all) question.reject(error);
  }
}
