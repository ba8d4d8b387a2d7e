/** How deep a JSON text, valid or not, nests arrays and objects, and how many members its objects have. */
export function measureJson(json: Buffer): { depth: number; members: number } {
  let open = 0;
  let depth = 0;
  let members = 0;
  let inString = false;
  for (let at = 0; at < json.length; at++) {
    switch (json[at]) {
      case 0x22: // "
        inString = !inString;
        break;
      case 0x5c: // \
        if (inString) at++;
        break;
      case 0x3a: // :
        if (!inString) members++;
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (!inString) depth = Math.max(depth, ++open);
        break;
      case 0x5d: // ]
      case 0x7d: // }
        if (!inString) open--;
    }
  }
  return { depth, members };
}

/** How many members the objects in a value have: fewer than its text where that has one twice. */
export function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const isList = Array.isArray(value);
  const all: unknown[] = isList ? value : Object.values(value);
  return all.reduce<number>((sum, one) => sum + countMembers(one), isList ? 0 : all.length);
}
