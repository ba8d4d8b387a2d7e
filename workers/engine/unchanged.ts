/** `version` changes with each sign of life. */
export interface Versioned {
  id: string;
  version: string;
}

/**
 * Finds what was unchanged in so many looks in a row. It compares no clocks, because those may be set, and a long
 * outage or a pause of this process counts as one look.
 */
export class Unchanged<T extends Versioned> {
  readonly #enough: number;
  #seen = new Map<string, { version: string; looks: number }>();

  constructor(enough: number) {
    this.#enough = enough;
  }

  /** Takes all current items; returns those that were unchanged often enough. */
  look(current: T[]): T[] {
    const before = this.#seen;
    this.#seen = new Map(
      current.map(({ id, version }) => {
        const last = before.get(id);
        return [id, { version, looks: last?.version === version ? last.looks + 1 : 1 }];
      }),
    );
    return current.filter(({ id }) => (this.#seen.get(id)?.looks ?? 0) >= this.#enough);
  }

  /** The next look is the first. */
  forget(): void {
    this.#seen.clear();
  }
}
