import type { RowsPage, RowsQuery, Value } from '../service/tables.ts';

/** Rows and columns of one request. */
const BLOCK_ROWS = 200;
const BLOCK_COLUMNS = 25;
/** Requests that are kept: some 300,000 values. */
const KEPT = 60;
/** While somebody scrolls past rows, nothing is asked for. */
const REST_MS = 60;

interface Block {
  rows?: Value[][];
  stop?: AbortController;
}

interface Seen {
  firstRow: number;
  endRow: number;
  firstColumn: number;
  endColumn: number;
}

type Read = (query: RowsQuery, signal: AbortSignal) => Promise<RowsPage>;

/** The rows of a view that are looked at, read in blocks, of which the latest are kept. */
export class TableRows {
  /** Rows of the view; undefined until the first answer. */
  total: number | undefined;
  error: unknown;
  readonly #columns: string[];
  readonly #read: Read;
  readonly #onChange: () => void;
  readonly #blocks = new Map<string, Block>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(columns: string[], read: Read, onChange: () => void) {
    this.#columns = columns;
    this.#read = read;
    this.#onChange = onChange;
  }

  /** A value; undefined while it is not there. */
  value(row: number, column: number): Value | undefined {
    const block = this.#blocks.get(keyOf(at(row, BLOCK_ROWS), at(column, BLOCK_COLUMNS)));
    return block?.rows?.[row % BLOCK_ROWS]?.[column % BLOCK_COLUMNS];
  }

  /** Asks for what is seen and not there, once it is looked at for a moment; what is not seen any more is not waited for. */
  want(seen: Seen): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(seen), this.total === undefined ? 0 : REST_MS);
  }

  destroy(): void {
    clearTimeout(this.#timer);
    for (const { stop } of this.#blocks.values()) stop?.abort();
  }

  /** After an error. */
  retry(): void {
    this.error = undefined;
    for (const [key, { rows }] of this.#blocks) if (!rows) this.#blocks.delete(key);
    this.#onChange();
  }

  #ask({ firstRow, endRow, firstColumn, endColumn }: Seen): void {
    if (this.error !== undefined) return;
    const wanted = new Set<string>();
    for (let row = at(firstRow, BLOCK_ROWS); row * BLOCK_ROWS < Math.max(1, endRow); row++)
      for (
        let column = at(firstColumn, BLOCK_COLUMNS);
        column * BLOCK_COLUMNS < endColumn;
        column++
      ) {
        const key = keyOf(row, column);
        wanted.add(key);
        const known = this.#blocks.get(key);
        // The latest used stand last.
        if (known) this.#blocks.delete(key);
        this.#blocks.set(key, known ?? this.#load(key, row, column));
      }
    for (const [key, { stop }] of this.#blocks)
      if (stop && !wanted.has(key)) {
        stop.abort();
        this.#blocks.delete(key);
      }
    for (const key of this.#blocks.keys()) {
      if (this.#blocks.size <= KEPT) break;
      if (!wanted.has(key)) this.#blocks.delete(key);
    }
  }

  #load(key: string, row: number, column: number): Block {
    const stop = new AbortController();
    const isWhole = this.#columns.length <= BLOCK_COLUMNS;
    const first = column * BLOCK_COLUMNS;
    const columns = isWhole ? undefined : this.#columns.slice(first, first + BLOCK_COLUMNS);
    const query = { offset: row * BLOCK_ROWS, limit: BLOCK_ROWS, ...(columns && { columns }) };
    const block: Block = { stop };
    this.#read(query, stop.signal)
      .then(({ rows, total }) => {
        Object.assign(block, { rows, stop: undefined });
        this.total = total;
      })
      .catch((error: unknown) => {
        if (stop.signal.aborted) return;
        this.#blocks.delete(key);
        this.error = error;
      })
      .finally(() => {
        if (!stop.signal.aborted) this.#onChange();
      });
    return block;
  }
}

const at = (n: number, size: number) => Math.floor(n / size);
const keyOf = (row: number, column: number) => `${row} ${column}`;
