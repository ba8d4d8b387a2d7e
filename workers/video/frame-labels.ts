import { quoteWord } from '../host-agent/shell-quote.ts';
import type { Size } from './frame-info.ts';
import type { Frame } from './frame-validator.ts';
import { CELL, CHARACTERS, drawCharacter, PAPER } from './label-font.ts';
import { batchWords } from './word-batches.ts';

export type LabelKind = 'frame' | 'name';

/** A video's labels: one line of text per frame, all of one length. */
export interface Labels {
  lines: readonly string[];
  /** The size of the pictures, which are transposed. */
  size: Size;
  /** Pixels of the video for one of the font. */
  scale: number;
}

/** A letter is ten pixels high, and the video this many letters. */
const LETTERS_HIGH = 24;

/**
 * A corner label for each frame: its index or name. Labels are pictures that we draw and ffmpeg overlays, so that file
 * names never enter ffmpeg's arguments, and no host needs a font.
 */
export function planLabels(kind: LabelKind, frames: readonly Frame[], video: Size): Labels {
  const scale = Math.max(1, Math.round(video.height / (CELL.height * LETTERS_HIGH)));
  const room = Math.max(1, Math.floor((video.width / scale - 1) / CELL.width));
  const texts = frames.map(frame => textOf(kind, frame));
  const longest = texts.reduce((length, text) => Math.max(length, text.length), 1);
  const length = Math.min(room, longest);
  return {
    lines: texts.map(text => shorten(text, length).padEnd(length)),
    // A column of paper closes the last letter.
    size: { width: CELL.height, height: length * CELL.width + 1 },
    scale,
  };
}

function textOf(kind: LabelKind, { index, path }: Frame): string {
  return kind === 'frame' ? String(index) : spell(path.slice(path.lastIndexOf('/') + 1));
}

/** Writes the name in letters that can be drawn: bytes that are not UTF-8 as `\xNN`, other characters as `\u{N}`. */
function spell(name: string): string {
  return name.replace(/[^ -~]/gu, character => {
    const code = character.codePointAt(0) ?? 0;
    const isByte = code >= 0xdc80 && code <= 0xdcff;
    return isByte ? `\\x${(code - 0xdc00).toString(16)}` : `\\u{${code.toString(16)}}`;
  });
}

/** Keeps the end, where the number is. */
function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  return length > 4 ? `..${text.slice(2 - length)}` : text.slice(-length);
}

/** The picture of one line. */
export function drawLabel(line: string): Buffer {
  return Buffer.concat([...[...line].map(pixelsOf), EDGE]);
}

const EDGE = Buffer.alloc(CELL.height, PAPER);
const drawn = new Map<string, Buffer>();

function pixelsOf(character: string): Buffer {
  const pixels = drawn.get(character) ?? drawCharacter(character);
  drawn.set(character, pixels);
  return pixels;
}

/** Commands for /bin/sh that print the pictures of all lines, one after the other. */
export function labelScript({ lines }: Labels): string {
  const used = new Set(lines.flatMap(line => [...line]));
  const letters = CHARACTERS.filter(character => used.has(character)).map(
    character =>
      `p["${escapeForAwk(Buffer.from(character))}"] = "${escapeForAwk(drawCharacter(character))}"`,
  );
  const program = `BEGIN {
${letters.join('\n')}
}
{ for (i = 1; i <= length($0); i++) printf "%s", p[substr($0, i, 1)]; printf "%s", "${escapeForAwk(EDGE)}" }`;
  const batches = batchWords(lines.map(quoteWord));
  return `{
${batches.map(batch => `printf '%s\\n' ${batch}`).join('\n')}
} | awk ${quoteWord(program)}`;
}

/** The bytes as a string of awk has them: each in octal. */
const escapeForAwk = (bytes: Buffer) =>
  [...bytes].map(byte => `\\${byte.toString(8).padStart(3, '0')}`).join('');
