/** Whether a pattern with `*`, any characters, and `?`, any one, fits a name, as in OpenSSH. No pattern takes exponential time. */
export function fitsPattern(name: string, pattern: string): boolean {
  let [at, inName] = [0, 0];
  /** Behind the last `*`, and what of the name it takes so far. */
  let star: { next: number; taken: number } | undefined;
  while (inName < name.length) {
    const expected = pattern[at];
    if (expected === '*') {
      at++;
      star = { next: at, taken: inName };
    } else if (expected === '?' || expected === name[inName]) {
      at++;
      inName++;
    } else if (star) {
      star.taken++;
      at = star.next;
      inName = star.taken;
    } else return false;
  }
  return /^\**$/.test(pattern.slice(at));
}

/** Whether a list such as `*.example.org,!gate.example.org` fits a name: one of them does, and none with `!` before it. */
export function fitsPatterns(name: string, patterns: string): boolean {
  const list = patterns.split(',');
  const [refused, wanted] = [true, false].map(isRefused =>
    list.filter(pattern => pattern.startsWith('!') === isRefused),
  ) as [string[], string[]];
  if (refused.some(pattern => fitsPattern(name, pattern.slice(1)))) return false;
  return wanted.some(pattern => fitsPattern(name, pattern));
}
