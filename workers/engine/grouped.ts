import { isDatabaseDown, sqlState } from '../../shared/database/connect.ts';

/** Groups under way at once: what is asked for meanwhile is the next group. */
const UNDER_WAY = 2;
const MAX_SIZE = 100;

interface Asked<Item, Answer> {
  item: Item;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/**
 * Writes concurrent items in one statement, and so in one commit. Nothing waits for a group to fill: the first item is
 * written at once, and what comes until its answer is the next group (decision 36).
 * Look-ups are batched by shared/database/batch-lookups.ts.
 */
export class Grouped<Item, Answer> {
  readonly #run: (items: Item[]) => Promise<Answer[]>;
  readonly #jobOf: (item: Item) => string;
  #waiting: Asked<Item, Answer>[] = [];
  #underWay = 0;

  /** `run` gives the answers in the order of the items, which are of different jobs. */
  constructor(run: (items: Item[]) => Promise<Answer[]>, jobOf: (item: Item) => string) {
    this.#run = run;
    this.#jobOf = jobOf;
  }

  ask(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      // After this tick, which may ask for more.
      if (this.#underWay < UNDER_WAY && this.#waiting.length === 1) queueMicrotask(this.#begin);
    });
  }

  readonly #begin = () => {
    if (this.#underWay >= UNDER_WAY || this.#waiting.length === 0) return;
    const group = this.#takeGroup();
    this.#underWay++;
    void this.#do(group).finally(() => {
      this.#underWay--;
      this.#begin();
    });
    this.#begin();
  };

  /** One of two items of a job may be outdated: each is judged by the job's row alone. */
  #takeGroup(): Asked<Item, Answer>[] {
    const group = new Map<string, Asked<Item, Answer>>();
    const rest: Asked<Item, Answer>[] = [];
    for (const asked of this.#waiting) {
      const job = this.#jobOf(asked.item);
      if (group.size === MAX_SIZE || group.has(job)) rest.push(asked);
      else group.set(job, asked);
    }
    this.#waiting = rest;
    return [...group.values()];
  }

  async #do(group: Asked<Item, Answer>[]): Promise<void> {
    try {
      const answers = await this.#run(group.map(({ item }) => item));
      for (const [n, { resolve }] of group.entries()) resolve(answers[n] as Answer);
    } catch (error) {
      // One of them, a row that something else has locked for example, must not fail the others.
      if (group.length > 1 && wasRolledBack(error))
        await Promise.all(group.map(one => this.#do([one])));
      else for (const { reject } of group) reject(error);
    }
  }
}

/** The server says so. Where no answer came, the group may be committed. */
const wasRolledBack = (error: unknown) => sqlState(error) !== undefined && !isDatabaseDown(error);
