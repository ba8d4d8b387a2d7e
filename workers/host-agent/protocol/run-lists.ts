/** `absent`: it was removed while the list was made. */
const STATES = ['running', 'ended', 'stopped', 'lost', 'wrong_node', 'absent'] as const;

type ListedState = (typeof STATES)[number];

export interface ListedRun {
  id: string;
  state: ListedState;
}

/** By the ids of the runs. */
export type ListedStates = ReadonlyMap<string, ListedState>;

/** Runs in one page, as many as the agent sends. Both limits bound what a hostile agent can send. */
const MAX_RUNS = 1_000;
const MAX_PAGES = 1_000;

/** Collects the pages of run lists, by the number of the request that each page answers. */
export class RunLists {
  readonly #pages = new Map<number, ListedRun[]>();

  /** Adds an item to the page of this number; ignored if no request waits for it. Throws for a state that is none. */
  take(number: number, [id = '', said]: string[]): void {
    const page = this.#pages.get(number);
    if (!page || page.length >= MAX_RUNS) return;
    const state = STATES.find(known => known === said);
    if (!state) throw new Error(`The agent listed a run as ${JSON.stringify(said)}.`);
    page.push({ id, state });
  }

  /**
   * `request` asks for the runs after the first `from` fences and resolves with the next `from`, or NaN after the last
   * page.
   */
  async *read(
    nextNumber: () => number,
    request: (number: number, from: number) => Promise<string>,
  ): AsyncGenerator<ListedRun[], void> {
    let from = 0;
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const page: ListedRun[] = [];
      const number = nextNumber();
      this.#pages.set(number, page);
      const next = Number(await request(number, from).finally(() => this.#pages.delete(number)));
      if (page.length > 0) yield page;
      if (!(next > from)) return;
      from = next;
    }
  }
}
