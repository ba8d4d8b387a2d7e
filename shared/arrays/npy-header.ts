/** What a NumPy file says before its values. */
export interface NpyHeader {
  /** A type such as '<f8', or the fields of records. */
  descr: PythonValue;
  isFortran: boolean;
  shape: number[];
  /** Where the values begin. */
  offset: number;
}

export type PythonValue = string | number | boolean | null | PythonValue[];

/** Numbers and booleans as arrays are stored: little-endian. */
export const ARRAY_TYPES = {
  '|b1': { size: 1, type: 'boolean' },
  '|i1': { size: 1, type: 'integer' },
  '|u1': { size: 1, type: 'integer' },
  '<i2': { size: 2, type: 'integer' },
  '<u2': { size: 2, type: 'integer' },
  '<i4': { size: 4, type: 'integer' },
  '<u4': { size: 4, type: 'integer' },
  '<i8': { size: 8, type: 'integer' },
  '<u8': { size: 8, type: 'integer' },
  '<f4': { size: 4, type: 'number' },
  '<f8': { size: 8, type: 'number' },
} as const satisfies Record<string, { size: number; type: 'boolean' | 'integer' | 'number' }>;
export type ArrayType = keyof typeof ARRAY_TYPES;

const MAGIC = '\x93NUMPY';
/** The header of a table with thousands of columns takes some 100 KB. */
export const MAX_NPY_HEADER = 1 << 20;
const MAX_DIMENSIONS = 32;
const MAX_DEPTH = 20;

/** Thrown for what is no header. */
export class NpyHeaderError extends Error {}

/** Reads the header at the beginning of these bytes (format versions 1.0 to 3.0). */
export function parseNpyHeader(bytes: Buffer): NpyHeader {
  if (bytes.length < 12 || bytes.toString('latin1', 0, 6) !== MAGIC)
    throw new NpyHeaderError('it does not begin like one');
  const version = bytes[6] as number;
  if (version < 1 || version > 3) throw new NpyHeaderError(`its version is ${version}`);
  const from = version === 1 ? 10 : 12;
  const length = version === 1 ? bytes.readUInt16LE(8) : bytes.readUInt32LE(8);
  const offset = from + length;
  if (length > MAX_NPY_HEADER) throw new NpyHeaderError('its header is too long');
  if (offset > bytes.length) throw new NpyHeaderError('its header is cut');
  const text = bytes.toString(version === 3 ? 'utf8' : 'latin1', from, offset);
  const header = new Map(parseDictionary(text));
  const [descr, isFortran, shape] = [
    header.get('descr'),
    header.get('fortran_order'),
    header.get('shape'),
  ];
  const isShape =
    Array.isArray(shape) &&
    shape.length <= MAX_DIMENSIONS &&
    shape.every(size => Number.isSafeInteger(size) && (size as number) >= 0);
  if (descr === undefined || typeof isFortran !== 'boolean' || !isShape)
    throw new NpyHeaderError('its header lacks type, order or shape');
  return { descr, isFortran, shape: shape as number[], offset };
}

/** The header of an array in C order, so that its values begin at a multiple of 64 bytes. */
export function formatNpyHeader(descr: ArrayType, shape: number[]): Buffer {
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(', ');
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${sizes}), }`;
  const padding = (64 - ((10 + text.length + 1) % 64)) % 64;
  const header = Buffer.from(`${MAGIC}\x01\0\0\0${text}${' '.repeat(padding)}\n`, 'latin1');
  header.writeUInt16LE(header.length - 10, 8);
  return header;
}

/** The pairs of a dictionary of Python's literals. */
function parseDictionary(text: string): [string, PythonValue][] {
  const tokens = /\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d+L?|True|False|None|[{}()[\],:])/gy;
  let token: string | undefined;
  const next = () => {
    token = tokens.exec(text)?.[1];
    return token;
  };
  const refuse = (): never => {
    throw new NpyHeaderError('its header is no dictionary of literals');
  };
  const expect = (wanted: string) => token === wanted || refuse();
  const value = (depth: number): PythonValue => {
    const first = token ?? refuse();
    if (depth > MAX_DEPTH) return refuse();
    if (first === '(' || first === '[') {
      const items: PythonValue[] = [];
      const end = first === '(' ? ')' : ']';
      for (next(); token !== end; ) {
        items.push(value(depth + 1));
        if (token === ',') next();
        else expect(end);
      }
      next();
      return items;
    }
    next();
    if (first === 'True' || first === 'False') return first === 'True';
    if (first === 'None') return null;
    if (/^-?\d/.test(first)) return Number(first.replace('L', ''));
    if (!/^['"]/.test(first)) return refuse();
    return first
      .slice(1, -1)
      .replace(/\\(x[0-9a-f]{2}|u[0-9a-f]{4}|.)/gs, (_all, code: string) =>
        /^[xu]./.test(code) ? String.fromCharCode(Number.parseInt(code.slice(1), 16)) : code,
      );
  };
  next();
  expect('{');
  const pairs: [string, PythonValue][] = [];
  for (next(); token !== '}'; ) {
    const key = value(0);
    expect(':');
    next();
    pairs.push([String(key), value(0)]);
    if (token === ',') next();
    else expect('}');
  }
  return pairs;
}
