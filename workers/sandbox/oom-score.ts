import { writeFileSync } from 'node:fs';

/** Where memory runs out Linux ends this process, not the worker. Elsewhere there is no such file. */
export function raiseOomScore(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000');
  } catch {}
}
