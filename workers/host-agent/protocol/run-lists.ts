/** state: running, ended, stopped, lost, wrong_node. */
export interface ListedRun {
  id: string;
  state: string;
}

/** Runs in one page, as many as the agent sends. Both limits bound what a hostile agent can send. */
const MAX_RUNS = 1_000;
const MAX_PAGES = 1_000;

/** Collects the pages of run lists, by the number of the request that each page answers. */
export class RunLists {
  readonly #pages = new Map<number, ListedRun[]>();

  /** Adds an item to the page of this number; ignored if no request waits for it. */
  take(number: number, [id = '', state = '']: string[]): void {
    const page = this.#pages.get(number);
    if (page && page.length < MAX_RUNS) page.push({ id, state });
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
