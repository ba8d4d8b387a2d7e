/**
 * A package's object as one with these private parts, which no version but the one in package.json need have. Throws
 * where one is missing: without it, what relies on it would silently not happen.
 */
export function privateParts<Parts extends object>(
  owner: string,
  object: object | undefined,
  names: readonly (keyof Parts & string)[],
): Parts {
  for (const name of names)
    if (object === undefined || Reflect.get(object, name) === undefined)
      throw new Error(
        `${owner} has no ${name}, on which Windlass relies: install the version in package.json`,
      );
  return object as Parts;
}
