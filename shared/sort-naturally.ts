/** Sorts runs of digits by value, all else by character. All names begin with `start`. */
export function sortNaturally(names: readonly string[], start = ''): string[] {
  // This blocks the event loop, so a million names are compared in place, and only where they may differ.
  const from = /\D\d*$/.exec(start)?.index ?? 0;
  return [...names].sort((a, b) => compareNaturally(a, b, from));
}

/** The names are equal before `from`, where no run of digits continues. */
function compareNaturally(a: string, b: string, from: number): number {
  const most = Math.min(a.length, b.length);
  let at = from;
  while (at < most && a.charCodeAt(at) === b.charCodeAt(at)) at++;
  if (at === most) return a.length - b.length;
  let run = at;
  while (run > from && isDigit(a, run - 1)) run--;
  if (isDigit(a, run) && isDigit(b, run)) return compareRuns(digitsAt(a, run), digitsAt(b, run));
  const isRunLonger = at > from && isDigit(a, at) !== isDigit(b, at);
  // A name whose text ends at digits sorts before one whose text goes on.
  if (isRunLonger) return isDigit(a, at) ? -1 : 1;
  return a.charCodeAt(at) - b.charCodeAt(at);
}

function compareRuns(a: string, b: string): number {
  const difference = Number(a) - Number(b);
  if (difference) return difference;
  return a < b ? -1 : 1;
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 48 && code <= 57;
}

function digitsAt(text: string, start: number): string {
  let end = start;
  while (isDigit(text, end)) end++;
  return text.slice(start, end);
}
