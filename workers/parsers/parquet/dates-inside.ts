/**
 * An SQL condition for whether a list or record contains a date that meets the given one, by DuckDB's type of the
 * value; undefined if it can contain none.
 */
export function someDate(
  value: string,
  { type, isBad, depth = 0 }: { type: string; isBad(date: string): string; depth?: number },
): string | undefined {
  if (type === 'DATE') return isBad(value);
  const list = /^(.*)\[\d*\]$/s.exec(type);
  if (list) {
    const element = `e${depth}`;
    const inner = someDate(element, { type: list[1] as string, isBad, depth: depth + 1 });
    return inner && `coalesce(len(list_filter(${value}, lambda ${element}: ${inner})) > 0, false)`;
  }
  if (!type.startsWith('STRUCT(')) return undefined;
  // By position, since a field may have no name.
  const found = fieldTypes(type).flatMap((field, i) => {
    const at = `struct_extract_at(${value}, ${i + 1})`;
    return someDate(at, { type: field, isBad, depth }) ?? [];
  });
  return found.length > 0 ? `(${found.join(' OR ')})` : undefined;
}

/** The types in STRUCT(a DATE, "b c" INTEGER[]). */
function fieldTypes(struct: string): string[] {
  const types: string[] = [];
  let depth = 0;
  let from = 'STRUCT('.length;
  // A text in quotes is one name, whatever is in it.
  for (const { 0: sign, index } of struct.matchAll(/"(?:[^"]|"")*"|[(),]/g)) {
    if (sign === '(') depth++;
    else if (sign === ')') depth--;
    if ((sign === ',' && depth === 1) || (sign === ')' && depth === 0)) {
      types.push(struct.slice(from, index).replace(/^(?:"(?:[^"]|"")*"|\w*) /, ''));
      from = index + ', '.length;
    }
  }
  return types;
}
