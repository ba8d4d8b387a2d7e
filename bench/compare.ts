const PAIRS = 9;

/** One side of a comparison: runs once and returns the measured value. */
export type Side = () => Promise<number>;

export interface Comparison {
  name: string;
  ours: Side;
  baseline: Side;
  /** The unit of the measured values, such as "requests/s". */
  unit: string;
  /** Default: more. */
  better?: 'more' | 'less';
  /** The ratio ours : baseline, at least (`more`) or at most (`less`). Without a target the ratio is only reported. */
  target?: number;
  /** Default: nine. */
  pairs?: number;
}

export interface ComparisonResult {
  ours: number;
  baseline: number;
  ratio: number;
  passed: boolean;
}

/**
 * Runs both sides alternately, in changing order, and compares them pair by pair: a slow moment of the machine
 * affects both. Reports the medians of the pairs; the median of their ratios decides.
 */
export async function compare(comparison: Comparison): Promise<ComparisonResult> {
  const { name, ours, baseline, unit, better = 'more', target, pairs = PAIRS } = comparison;
  // The first run of each side is a warm-up.
  await ours();
  await baseline();
  const measured: { ours: number; baseline: number }[] = [];
  for (let pair = 0; pair < pairs; pair++) {
    if (pair % 2 === 0) {
      const first = await ours();
      measured.push({ ours: first, baseline: await baseline() });
    } else {
      const first = await baseline();
      measured.push({ ours: await ours(), baseline: first });
    }
  }
  const result = {
    ours: median(measured.map(pair => pair.ours)),
    baseline: median(measured.map(pair => pair.baseline)),
    ratio: median(measured.map(pair => pair.ours / pair.baseline)),
  };
  const passed =
    target === undefined || (better === 'more' ? result.ratio >= target : result.ratio <= target);
  const words = better === 'more' ? 'at least' : 'at most';
  const targetText = target === undefined ? '' : ` (${words} ${target})`;
  console.log(
    `${target === undefined ? '    ' : passed ? 'ok  ' : 'MISS'} ${name}: ${format(result.ours)} against ${format(result.baseline)} ${unit}, ratio ${result.ratio.toFixed(2)}${targetText}`,
  );
  return { ...result, passed };
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low = 0, high = 0] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return (low + high) / 2;
}

function format(value: number): string {
  return value >= 100 ? Math.round(value).toString() : value.toPrecision(3);
}
