/** state: running, ended, stopped, lost, wrong_node. */
export interface ListedRun {
  id: string;
  state: string;
}

/** Runs of one page, as many as an agent of ours names; and pages, where what calls itself one ends none. */
const MOST_LISTED = 1_000;
const MOST_PAGES = 1_000;

/** The lists that an agent is asked for, each in pages, by the number of the request that a page answers. */
export class RunLists {
  readonly #pages = new Map<number, ListedRun[]>();

  /** An item of the page of this number; one that nobody waits for is left out. */
  take(number: number, [id = '', state = '']: string[]): void {
    const page = this.#pages.get(number);
    if (page && page.length < MOST_LISTED) page.push({ id, state });
  }

  /** `ask` has the agent list what lies behind so many fences; resolves with how many there were, where there are more. */
  async *read(
    nextNumber: () => number,
    ask: (number: number, from: number) => Promise<string>,
  ): AsyncGenerator<ListedRun[], void> {
    let from = 0;
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      const page: ListedRun[] = [];
      const number = nextNumber();
      this.#pages.set(number, page);
      const next = Number(await ask(number, from).finally(() => this.#pages.delete(number)));
      if (page.length > 0) yield page;
      if (!(next > from)) return;
      from = next;
    }
  }
}
