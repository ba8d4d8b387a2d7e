import { formatCount } from '../ui/numbers.ts';
import type { Span, Style } from './ansi.ts';
import { findInText } from './find-lines.ts';
import type { LogLine } from './output-log.ts';

/** A piece of a line that is drawn as one element. */
interface Piece {
  text: string;
  style: Style;
  isMatch: boolean;
}

/** Draws a line into the element, with what is searched for marked. Text is only ever text: no line makes markup. */
export function drawLine(into: HTMLElement, line: LogLine, query: string): void {
  const pieces = cutAtMatches(line.spans, query).map(drawPiece);
  if (line.hidden > 0) {
    const more = document.createElement('span');
    more.className = 'log-hidden';
    more.textContent = `… ${formatCount(line.hidden)} more bytes in this line: download it`;
    pieces.push(more);
  }
  into.replaceChildren(...pieces);
}

function cutAtMatches(spans: Span[], query: string): Piece[] {
  const matches = findInText(spans.map(({ text }) => text).join(''), query);
  let at = 0;
  return spans.flatMap(({ text, style }) => {
    const from = at;
    at += text.length;
    const inside = matches.filter(([start, end]) => start < at && end > from);
    const edges = [
      ...new Set([0, ...inside.flat().map(edge => edge - from), text.length].map(clampTo(text))),
    ];
    return edges.slice(1).map((end, i) => {
      const start = edges[i] ?? 0;
      const isMatch = inside.some(([a, b]) => a <= from + start && b >= from + end);
      return { text: text.slice(start, end), style, isMatch };
    });
  });
}

const clampTo = (text: string) => (edge: number) => Math.max(0, Math.min(text.length, edge));

function drawPiece({ text, style, isMatch }: Piece): Node {
  const classes = classesOf(style);
  const hasColor = typeof style.color === 'string' || typeof style.background === 'string';
  if (!isMatch && !hasColor && classes.length === 0) return document.createTextNode(text);
  const element = document.createElement(isMatch ? 'mark' : 'span');
  element.textContent = text;
  element.classList.add(...classes);
  if (typeof style.color === 'string') element.style.color = style.color;
  if (typeof style.background === 'string') element.style.backgroundColor = style.background;
  return element;
}

function classesOf({ color, background, ...flags }: Style): string[] {
  const classes = Object.keys(flags).map(flag => `sgr-${flag}`);
  if (typeof color === 'number') classes.push(`fg-${color}`);
  if (typeof background === 'number') classes.push(`bg-${background}`);
  return classes;
}
