/** What can be chosen: a value, and what people call it. */
export type Option = readonly [value: string, name: string];

/** Those whose names have a part that was typed; first those that begin with it. */
export function findOptions(options: readonly Option[], typed: string): readonly Option[] {
  const part = typed.trim().toLocaleLowerCase();
  if (part === '') return options;
  const first: Option[] = [];
  const others: Option[] = [];
  for (const option of options) {
    const at = option[1].toLocaleLowerCase().indexOf(part);
    if (at === 0) first.push(option);
    else if (at > 0) others.push(option);
  }
  return [...first, ...others];
}
