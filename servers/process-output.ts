import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

/** Kept of what a process printed. */
const KEPT = 1_000;

export interface ProcessOutput {
  /** The first line, of those kept and those to come, with these words in it; rejects after so many ms (10 s). */
  find(words: string, timeoutMs?: number): Promise<string>;
  /** The last few lines. */
  last(): string;
}

/** Reads both outputs of a process for as long as it lives. */
export function readOutput(child: ChildProcess): ProcessOutput {
  const lines: string[] = [];
  for (const input of [child.stdout, child.stderr]) {
    if (!input) continue;
    createInterface({ input }).on('line', line => {
      lines.push(line);
      if (lines.length > KEPT) lines.shift();
    });
  }
  return {
    async find(words, timeoutMs = 10_000) {
      const until = performance.now() + timeoutMs;
      for (;;) {
        const found = lines.find(line => line.includes(words));
        if (found !== undefined) return found;
        if (performance.now() > until)
          throw new Error(`no line with "${words}" came within ${timeoutMs / 1_000} s`);
        await delay(20);
      }
    },
    last: () => lines.slice(-20).join('\n').trim().slice(-2_000),
  };
}
