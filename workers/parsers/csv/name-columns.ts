import { TableError } from '../table/protocol.ts';

const MAX_NAME_LENGTH = 1_000;

/**
 * Unique names for the columns. The first column written exactly so keeps the name; others get a suffix, also if only
 * the case differs, as in SQL. Empty names become column2 and so on. A made name is never a given one, which would
 * label another column's values.
 */
export function nameColumns(given: string[]): string[] {
  const wanted = given.map((text, i) => text.trim() || `column${i}`);
  for (const [i, name] of wanted.entries()) check(name, i);
  const all = new Set(wanted.map(keyOf));
  const owners = new Map<string, number>();
  const claim = (i: number) => {
    const key = keyOf(wanted[i] as string);
    if (!owners.has(key)) owners.set(key, i);
  };
  // Where both `"a "` and `a` are given, the second one is written exactly so.
  for (const [i, text] of given.entries()) if (text === wanted[i]) claim(i);
  for (const i of wanted.keys()) claim(i);
  const taken = new Set<string>();
  const next = new Map<string, number>();
  return wanted.map((name, i) => {
    const key = keyOf(name);
    if (owners.get(key) === i) return name;
    for (let n = (next.get(key) ?? 0) + 1; ; n++) {
      const made = `${name}_${n}`;
      if (all.has(keyOf(made)) || taken.has(keyOf(made))) continue;
      next.set(key, n);
      taken.add(keyOf(made));
      return made;
    }
  });
}

const keyOf = (name: string) => name.toLowerCase();

function check(name: string, i: number): void {
  const refuse = (what: string) => {
    throw new TableError({
      reason: `the name of column ${i + 1} ${what}`,
      hint: 'Rename the column.',
    });
  };
  if (name.length > MAX_NAME_LENGTH) refuse(`is longer than ${MAX_NAME_LENGTH} characters`);
  if (/[\0\p{Surrogate}]/u.test(name)) refuse('has a NUL character or half a surrogate pair');
}
