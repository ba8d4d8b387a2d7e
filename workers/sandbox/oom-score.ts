import { writeFileSync } from 'node:fs';

/** Makes Linux kill this process, not the worker, when memory runs out. Other systems have no such file. */
export function raiseOomScore(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000');
  } catch {}
}
