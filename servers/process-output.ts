import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

/** The number of lines in memory. */
const LARGEST = 1_000;

export interface ProcessOutput {
  /** Resolves with the first line, past or future, that contains the text. Rejects after `timeoutMs` (10 s). */
  waitForLine(text: string, timeoutMs?: number): Promise<string>;
  /** The last 20 lines. */
  last(): string;
}

/** Collects the standard output and the standard error of a process. */
export function readOutput(child: ChildProcess): ProcessOutput {
  const lines: string[] = [];
  for (const input of [child.stdout, child.stderr]) {
    if (!input) continue;
    createInterface({ input }).on('line', line => {
      lines.push(line);
      if (lines.length > LARGEST) lines.shift();
    });
  }
  return {
    async waitForLine(text, timeoutMs = 10_000) {
      const until = performance.now() + timeoutMs;
      for (;;) {
        const found = lines.find(line => line.includes(text));
        if (found !== undefined) return found;
        if (performance.now() > until)
          throw new Error(`no line with "${text}" appeared within ${timeoutMs / 1_000} s`);
        await delay(20);
      }
    },
    last: () => lines.slice(-20).join('\n').trim().slice(-2_000),
  };
}
