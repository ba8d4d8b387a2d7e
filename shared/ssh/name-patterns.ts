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

/**
 * Whether a list such as `*.example.org,!gate.example.org` fits what has these names: a pattern fits one of them, and none with `!`
 * before it does.
 */
export function fitsPatterns(names: string[], patterns: string): boolean {
  const fits = (pattern: string) => names.some(name => fitsPattern(name, pattern));
  const list = patterns.split(',');
  if (list.some(pattern => pattern.startsWith('!') && fits(pattern.slice(1)))) return false;
  return list.some(pattern => !pattern.startsWith('!') && fits(pattern));
}
