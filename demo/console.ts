/** What a person watches: numbered steps, what they showed, how long they took. */
export class Console {
  #step = 0;
  readonly #began = performance.now();

  title(text: string): void {
    process.stdout.write(`\n${bold(text)}\n`);
  }

  note(text: string): void {
    process.stdout.write(`   ${text}\n`);
  }

  /** Runs one step; a step that throws is shown as failed and ends the demonstration. */
  async step<T>(what: string, work: () => Promise<T>): Promise<T> {
    const began = performance.now();
    process.stdout.write(`\n${bold(`${++this.#step}. ${what}`)}\n`);
    try {
      const result = await work();
      process.stdout.write(`   ${green('done')} in ${seconds(performance.now() - began)}\n`);
      return result;
    } catch (error) {
      process.stdout.write(
        `   ${red('failed')}: ${error instanceof Error ? error.message : String(error)}\n`,
      );
      throw error;
    }
  }

  /** A bar that redraws itself on a terminal, and a line for each quarter elsewhere. */
  progress(label: string): (part: number) => void {
    let shown = -1;
    return part => {
      const filled = Math.round(Math.min(1, part) * 24);
      if (process.stdout.isTTY) {
        process.stdout.write(
          `\r   ${label} ${'█'.repeat(filled)}${'░'.repeat(24 - filled)} ${Math.round(part * 100)} %${part >= 1 ? '\n' : ''}`,
        );
      } else if (Math.floor(filled / 6) !== shown) {
        shown = Math.floor(filled / 6);
        process.stdout.write(`   ${label} ${Math.round(part * 100)} %\n`);
      }
    };
  }

  get total(): string {
    return seconds(performance.now() - this.#began);
  }
}

const paint = (code: number) => (text: string) =>
  process.stdout.isTTY ? `\u001b[${code}m${text}\u001b[0m` : text;
export const bold = paint(1);
export const green = paint(32);
export const red = paint(31);
export const dim = paint(2);

const seconds = (ms: number) => `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;

/** Throws with the words unless the condition holds: every step of the demonstration is checked. */
export function expect(condition: unknown, words: string): asserts condition {
  if (!condition) throw new Error(words);
}
