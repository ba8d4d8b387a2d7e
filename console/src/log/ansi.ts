/** What SGR escape sequences set (ECMA-48, 8.3.117). A colour is a number of the palette, or `#rrggbb`. */
export interface Style {
  color?: number | string;
  background?: number | string;
  bold?: true;
  dim?: true;
  italic?: true;
  underline?: true;
  inverse?: true;
  strike?: true;
}

export interface Span {
  text: string;
  style: Style;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const SEQUENCE = /\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: likewise.
const INVISIBLE = /[\x00-\x08\x0b-\x1f\x7f]/g;
const ESCAPE = 27;
/** A sequence that is longer is taken for text. */
const LONGEST = 64;

/** The text without escape sequences and other control characters, as it is searched and copied. */
export const plainText = (text: string): string =>
  text.replace(SEQUENCE, '').replace(INVISIBLE, '');

/** A line's pieces, each of one style; what is set at its end is the last style. */
export function readSpans(text: string, from: Style): { spans: Span[]; style: Style } {
  let style = from;
  let at = 0;
  const spans: Span[] = [];
  const add = (until: number) => {
    const piece = text.slice(at, until).replace(INVISIBLE, '');
    if (piece !== '') spans.push({ text: piece, style });
  };
  for (const match of text.matchAll(SEQUENCE)) {
    add(match.index);
    at = match.index + match[0].length;
    if (match[2] === 'm') style = applySgr(match[1] ?? '', style);
  }
  add(text.length);
  return { spans, style };
}

/** The style after these bytes; `rest` is a sequence at their end that is not whole. */
export function readStyle(
  bytes: Uint8Array,
  from: Style,
): { style: Style; rest: Uint8Array | undefined } {
  let style = from;
  for (let at = bytes.indexOf(ESCAPE); at !== -1; at = bytes.indexOf(ESCAPE, at + 1)) {
    if (bytes[at + 1] !== undefined && bytes[at + 1] !== 0x5b) continue;
    let end = at + 2;
    while (end < bytes.length && end - at < LONGEST && isParameter(bytes[end])) end++;
    if (end >= bytes.length) return { style, rest: bytes.subarray(at) };
    if (bytes[end] !== 0x6d) continue;
    style = applySgr(String.fromCharCode(...bytes.subarray(at + 2, end)), style);
  }
  return { style, rest: undefined };
}

const isParameter = (byte = 0) => byte >= 0x20 && byte <= 0x3f;

function applySgr(parameters: string, before: Style): Style {
  const codes = parameters.split(/[;:]/).map(Number);
  const style = { ...before };
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? 0;
    if (code === 38 || code === 48) {
      const { color, used } = readColor(codes.slice(i + 1));
      i += used;
      if (color !== undefined) style[code === 38 ? 'color' : 'background'] = color;
    } else applyCode(code, style);
  }
  return style;
}

const FLAGS: Record<number, Exclude<keyof Style, 'color' | 'background'>> = {
  1: 'bold',
  2: 'dim',
  3: 'italic',
  4: 'underline',
  7: 'inverse',
  9: 'strike',
};
const ENDS: Record<number, (keyof Style)[]> = {
  22: ['bold', 'dim'],
  23: ['italic'],
  24: ['underline'],
  27: ['inverse'],
  29: ['strike'],
  39: ['color'],
  49: ['background'],
};

function applyCode(code: number, style: Style): void {
  const flag = FLAGS[code];
  if (flag) style[flag] = true;
  else if (code >= 30 && code <= 37) style.color = code - 30;
  else if (code >= 90 && code <= 97) style.color = code - 82;
  else if (code >= 40 && code <= 47) style.background = code - 40;
  else if (code >= 100 && code <= 107) style.background = code - 92;
  else {
    const ended = code === 0 ? (Object.keys(style) as (keyof Style)[]) : (ENDS[code] ?? []);
    for (const name of ended) delete style[name];
  }
}

/** `5;n` of 256 colours, or `2;r;g;b`. */
function readColor(codes: number[]): { color: number | string | undefined; used: number } {
  const [form, ...rest] = codes;
  if (form === 5) return { color: paletteColor(rest[0] ?? 0), used: 2 };
  if (form === 2) return { color: toHex(rest.slice(0, 3)), used: 4 };
  return { color: undefined, used: 1 };
}

const LEVELS = [0, 95, 135, 175, 215, 255];

/** The first 16 are the theme's; then a cube of 6 × 6 × 6, then 24 greys. */
function paletteColor(n: number): number | string {
  if (n < 16) return n;
  if (n >= 232) return toHex([1, 1, 1].map(() => 8 + (Math.min(n, 255) - 232) * 10));
  const cube = n - 16;
  return toHex([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map(i => LEVELS[i]));
}

const toHex = (parts: (number | undefined)[]): string =>
  `#${[0, 1, 2]
    .map(i => Math.min(255, parts[i] || 0))
    .map(part => part.toString(16).padStart(2, '0'))
    .join('')}`;
