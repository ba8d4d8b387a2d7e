const PAIRS = 9;

/** One side of a comparison: runs once and tells how much it did, in the unit that the caller compares. */
export type Side = () => Promise<number>;

export interface Comparison {
  name: string;
  ours: Side;
  peer: Side;
  /** What the sides return, such as "requests/s"; `more` is better unless it is said otherwise. */
  unit: string;
  better?: 'more' | 'less';
  /** The ratio ours : peer that we promise, at least (`more`) or at most (`less`); none where it is only told. */
  promise?: number;
}

export interface Compared {
  ours: number;
  peer: number;
  ratio: number;
  kept: boolean;
}

/**
 * Runs both sides in turn, in changing order, and compares pair by pair: what slows the machine for a while slows both.
 * The medians of nine pairs are told, and the median of their ratios is what counts.
 */
export async function compare(comparison: Comparison): Promise<Compared> {
  const { name, ours, peer, unit, better = 'more', promise } = comparison;
  // Neither side's first run counts: code is not compiled and caches are empty yet.
  await ours();
  await peer();
  const measured: { ours: number; peer: number }[] = [];
  for (let pair = 0; pair < PAIRS; pair++) {
    if (pair % 2 === 0) {
      const mine = await ours();
      measured.push({ ours: mine, peer: await peer() });
    } else {
      const theirs = await peer();
      measured.push({ ours: await ours(), peer: theirs });
    }
  }
  const result = {
    ours: median(measured.map(pair => pair.ours)),
    peer: median(measured.map(pair => pair.peer)),
    ratio: median(measured.map(pair => pair.ours / pair.peer)),
  };
  const kept =
    promise === undefined ||
    (better === 'more' ? result.ratio >= promise : result.ratio <= promise);
  const words = better === 'more' ? 'at least' : 'at most';
  const promised = promise === undefined ? '' : ` (${words} ${promise})`;
  console.log(
    `${promise === undefined ? '    ' : kept ? 'ok  ' : 'MISS'} ${name}: ${format(result.ours)} against ${format(result.peer)} ${unit}, ratio ${result.ratio.toFixed(2)}${promised}`,
  );
  return { ...result, kept };
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
