/** [fid, pid], as the interface writes it. */
type PartTuple = [fid: number, pid: number];

/** Limit on the missing parts that an answer lists, and on those in excess. */
export const MAX_LISTED = 10_000;

export interface Comparison {
  missing: PartTuple[];
  excess: PartTuple[];
  /** Whether there are more than are listed. */
  truncated: boolean;
}

/**
 * Compares the stored parts with the client's count of parts for each file. Stops when the list is full, as the counts
 * may be any numbers.
 */
export function compareParts(
  uploaded: number[],
  stored: { fid: number; pid: number }[],
): Comparison {
  const missing: PartTuple[] = [];
  const excess: PartTuple[] = [];
  const there = new Set<string>();
  let truncated = false;
  for (const { fid, pid } of stored) {
    if (pid < (uploaded[fid] ?? 0)) there.add(`${fid}/${pid}`);
    else if (excess.length < MAX_LISTED) excess.push([fid, pid]);
    else truncated = true;
  }
  for (const [fid, count] of uploaded.entries()) {
    for (let pid = 0; pid < count; pid++) {
      if (there.has(`${fid}/${pid}`)) continue;
      if (missing.length === MAX_LISTED) return { missing, excess, truncated: true };
      missing.push([fid, pid]);
    }
  }
  return { missing, excess, truncated };
}
