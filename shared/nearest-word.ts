/** The word that was meant by a mistyped one; undefined where none is within `most` slips. */
export function nearestWord(
  given: string,
  known: readonly string[],
  most = Math.min(3, Math.ceil(given.length / 3)),
): string | undefined {
  const [best] = known
    .map(word => ({ word, slips: countSlips(given, word) }))
    .filter(({ slips }) => slips <= most)
    .sort((a, b) => a.slips - b.slips);
  return best?.word;
}

/** Letters that were left out, added, replaced, or changed places with the next one (optimal string alignment). */
function countSlips(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, n) => n);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      let slips = Math.min(
        (last[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last[j - 1] ?? 0) + (isSame ? 0 : 1),
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        slips = Math.min(slips, (before[j - 2] ?? 0) + 1);
      row.push(slips);
    }
    before = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
