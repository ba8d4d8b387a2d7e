import type { Statistic } from '../service/operations.ts';

export interface Steps {
  /** Where each step begins, in ms since 1970. */
  times: number[];
  stepMs: number;
  succeeded: number[];
  failed: number[];
  cancelled: number[];
  /** Seconds; of several kinds that of the slowest. */
  waitMedian: (number | null)[];
  wait95: (number | null)[];
  took95: (number | null)[];
  tookMedian: (number | null)[];
  waiting: (number | null)[];
  running: (number | null)[];
}

interface Given {
  since: string;
  /** Seconds. */
  step: number;
  items: Statistic[];
}

/** All steps from `since` to now, of one kind of jobs or of all, also those in which nothing was. */
export function toSteps({ since, step, items }: Given, kind: string, now: number): Steps {
  const stepMs = step * 1_000;
  const first = Math.floor(Date.parse(since) / stepMs) * stepMs;
  const count = Math.max(1, Math.floor((now - first) / stepMs) + 1);
  const times = Array.from({ length: count }, (_, n) => first + n * stepMs);
  const chosen = items.filter(item => kind === '' || item.kind === kind);
  const looked = new Set(
    items.filter(({ waiting }) => waiting !== null).map(({ time }) => indexOf(time)),
  );
  function indexOf(time: string): number {
    return Math.round((Date.parse(time) - first) / stepMs);
  }
  const gather = <Value>(
    start: (at: number) => Value,
    add: (value: Value, item: Statistic) => Value,
  ) => {
    const values = times.map((_, at) => start(at));
    for (const item of chosen) {
      const at = indexOf(item.time);
      const before = values[at];
      if (before !== undefined) values[at] = add(before, item);
    }
    return values;
  };
  const sumOf = (name: 'succeeded' | 'failed' | 'cancelled') =>
    gather(
      () => 0,
      (sum, item) => sum + item[name],
    );
  const mostOf = (name: 'wait' | 'duration', part: 'median' | 'p95') =>
    gather<number | null>(
      () => null,
      (most, item) => greatest(most, item[name]?.[part] ?? null),
    );
  // Where somebody looked, kinds without a row have no jobs.
  const depthOf = (name: 'waiting' | 'running') =>
    gather<number | null>(
      at => (looked.has(at) ? 0 : null),
      (sum, item) => (item[name] === null ? sum : (sum ?? 0) + item[name]),
    );
  return {
    times,
    stepMs,
    succeeded: sumOf('succeeded'),
    failed: sumOf('failed'),
    cancelled: sumOf('cancelled'),
    waitMedian: mostOf('wait', 'median'),
    wait95: mostOf('wait', 'p95'),
    tookMedian: mostOf('duration', 'median'),
    took95: mostOf('duration', 'p95'),
    waiting: depthOf('waiting'),
    running: depthOf('running'),
  };
}

function greatest(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.max(a, b);
}
