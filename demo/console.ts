const isTerminal = () => process.stdout.isTTY === true;

/** Prints numbered steps with notes, progress bars, tables and durations. */
export class Console {
  #step = 0;
  /** The current line is an unfinished progress bar. */
  #drawing = false;
  #closed = false;
  readonly #began = performance.now();

  /** Stops all output, also that of an interrupted step. No further step can start. */
  close(): void {
    this.#closed = true;
  }

  title(text: string): void {
    this.#write(`\n${bold(text)}\n`);
  }

  note(text: string): void {
    this.#write(`   ${text}\n`);
  }

  /** Runs one step and prints its outcome. Rethrows its error. */
  async step<T>(what: string, work: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new Error('the demonstration was stopped');
    const began = performance.now();
    this.#write(`\n${bold(`${++this.#step}. ${what}`)}\n`);
    try {
      const result = await work();
      this.note(`${green('done')} in ${seconds(performance.now() - began)}`);
      return result;
    } catch (error) {
      this.note(`${red('failed')}: ${describeError(error)}`);
      throw error;
    }
  }

  /** A progress bar on a terminal; elsewhere a line for each quarter. Never goes backwards. */
  progress(label: string): (part: number) => void {
    let shown = -1;
    return part => {
      const cells = Math.floor(Math.min(1, part) * CELLS);
      const step = isTerminal() ? cells : Math.floor(Math.min(1, part) * 4);
      if (step <= shown || this.#closed) return;
      shown = step;
      const percent = `${Math.round(Math.min(1, part) * 100)} %`;
      if (!isTerminal()) return this.note(`${label} ${percent}`);
      const bar = `${'█'.repeat(cells)}${'░'.repeat(CELLS - cells)}`;
      process.stdout.write(`\r   ${label} ${bar} ${percent.padStart(5)}`);
      this.#drawing = part < 1;
      if (part >= 1) process.stdout.write('\n');
    };
  }

  /** A table with columns of up to 32 characters; numbers are aligned to the right. */
  table(names: string[], rows: unknown[][]): void {
    const texts = rows.map(row => row.map(showCell));
    const widths = names.map((name, n) =>
      Math.max(name.length, ...texts.map(row => row[n]?.length ?? 0)),
    );
    const line = (cells: string[], isRight: (n: number) => boolean) =>
      cells
        .map((cell, n) =>
          isRight(n) ? cell.padStart(widths[n] ?? 0) : cell.padEnd(widths[n] ?? 0),
        )
        .join('  ')
        .trimEnd();
    const isNumber = (n: number) => rows.some(row => typeof row[n] === 'number');
    this.note(dim(line(names, isNumber)));
    for (const row of texts) this.note(line(row, isNumber));
  }

  /** A horizontal bar chart. */
  bars(entries: { label: string; count: number }[]): void {
    const largest = Math.max(1, ...entries.map(entry => entry.count));
    const width = Math.max(...entries.map(entry => entry.label.length));
    for (const { label, count } of entries) {
      const bar = (isTerminal() ? '█' : '#').repeat(Math.round((count / largest) * 40));
      this.note(`${label.padStart(width)} ${bar} ${dim(String(count))}`);
    }
  }

  get total(): string {
    return seconds(performance.now() - this.#began);
  }

  #write(text: string): void {
    if (this.#closed) return;
    process.stdout.write(this.#drawing ? `\n${text}` : text);
    this.#drawing = false;
  }
}

const CELLS = 24;

const paint = (code: number) => (text: string) =>
  isTerminal() ? `\u001b[${code}m${text}\u001b[0m` : text;
export const bold = paint(1);
export const green = paint(32);
export const red = paint(31);
export const dim = paint(2);

const seconds = (ms: number) => `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;

function showCell(value: unknown): string {
  const text = (typeof value === 'string' ? value : JSON.stringify(value)).replace(/\s+/g, ' ');
  return text.length > 32 ? `${text.slice(0, 31)}…` : text;
}

/** The error in one line, with its cause, where fetch() puts the reason. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? error.cause : undefined;
  const more = cause ? ` (${cause.message || (cause as NodeJS.ErrnoException).code})` : '';
  return `${error.message}${more}`.replace(/\s*\n\s*/g, ' | ');
}

/** Throws an error with this message unless the condition holds. */
export function expect(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(message);
}
