/** Kinds of tokens of JSON (RFC 8259); a `name` is a string before a colon. */
type Kind = 'name' | 'string' | 'number' | 'literal' | 'mark';

export interface Token {
  kind: Kind;
  from: number;
  to: number;
}

export interface JsonError {
  /** Where in the text it is. */
  at: number;
  problem: string;
}

export interface JsonText {
  /** All tokens, or those before the error. */
  tokens: Token[];
  error: JsonError | undefined;
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERAL = /true|false|null/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;
const SPACE = /[ \t\n\r]*/y;

/** What may stand next. */
type Expected = 'value' | 'value or end' | 'name' | 'name or end' | 'colon' | 'comma' | 'nothing';

const PROBLEMS: Record<Expected, string> = {
  value: 'a value belongs here',
  'value or end': 'a value or ] belongs here',
  name: 'a name in double quotes belongs here',
  'name or end': 'a name in double quotes or } belongs here',
  colon: 'a colon belongs here',
  comma: 'a comma or the closing bracket belongs here',
  nothing: 'nothing may follow the value',
};

/**
 * Reads JSON without changing it: no number is rounded, no repeated name is lost. JSON.parse() keeps neither, and tells
 * the place of an error only in words that differ between browsers.
 */
export function readJson(text: string): JsonText {
  const tokens: Token[] = [];
  const open: ('{' | '[')[] = [];
  let expected = 'value' as Expected;
  let at = skipSpace(text, 0);
  const fail = (problem = PROBLEMS[expected]): JsonText => ({ tokens, error: { at, problem } });
  const push = (kind: Kind, to: number) => {
    tokens.push({ kind, from: at, to });
    at = skipSpace(text, to);
  };
  const afterValue = (): Expected => (open.length === 0 ? 'nothing' : 'comma');
  while (at < text.length) {
    const first = text[at];
    const isOfObject = open.at(-1) === '{';
    if (first === (isOfObject ? '}' : ']') && open.length > 0 && mayEnd(expected)) {
      open.pop();
      push('mark', at + 1);
      expected = afterValue();
    } else if (expected === 'comma') {
      if (first !== ',') return fail();
      push('mark', at + 1);
      expected = isOfObject ? 'name' : 'value';
    } else if (expected === 'colon') {
      if (first !== ':') return fail();
      push('mark', at + 1);
      expected = 'value';
    } else if (expected === 'name' || expected === 'name or end') {
      if (first !== '"') return fail();
      const end = endOfString(text, at);
      if (typeof end === 'object') return { tokens, error: end };
      push('name', end);
      expected = 'colon';
    } else if (expected === 'nothing') {
      return fail();
    } else if (first === '{' || first === '[') {
      open.push(first);
      push('mark', at + 1);
      expected = first === '{' ? 'name or end' : 'value or end';
    } else if (first === '"') {
      const end = endOfString(text, at);
      if (typeof end === 'object') return { tokens, error: end };
      push('string', end);
      expected = afterValue();
    } else {
      const number = matchAt(NUMBER, text, at);
      const end = number ?? matchAt(LITERAL, text, at);
      if (end === undefined) return fail();
      push(number === undefined ? 'literal' : 'number', end);
      expected = afterValue();
    }
  }
  if (expected === 'nothing') return { tokens, error: undefined };
  return fail(
    tokens.length === 0 ? 'a value belongs here' : `it ends too early: ${PROBLEMS[expected]}`,
  );
}

/** The JSON with one member or item a line; every token stays as it is written. Text with an error is returned unchanged. */
export function formatJson(text: string): string {
  const { tokens, error } = readJson(text);
  if (error) return text;
  const written = (token: Token) => text.slice(token.from, token.to);
  let made = '';
  let depth = 0;
  const breakLine = () => `\n${'  '.repeat(depth)}`;
  for (const [n, token] of tokens.entries()) {
    const word = written(token);
    const previous = n > 0 ? text[tokens[n - 1]?.from ?? 0] : undefined;
    const isFirst = (previous === '{' || previous === '[') && tokens[n - 1]?.kind === 'mark';
    if (token.kind === 'mark' && (word === '}' || word === ']')) {
      depth--;
      made += isFirst ? word : `${breakLine()}${word}`;
      continue;
    }
    const isSeparator = token.kind === 'mark' && (word === ',' || word === ':');
    const follows = tokens[n - 1]?.kind === 'mark' ? previous : undefined;
    if (!isSeparator && (isFirst || follows === ',')) made += breakLine();
    if (follows === ':') made += ' ';
    made += word;
    if (token.kind === 'mark' && (word === '{' || word === '[')) depth++;
  }
  return made;
}

/** Line and column of a place in a text, from 1. */
export function placeOf(text: string, at: number): { line: number; column: number } {
  const before = text.slice(0, at);
  const line = before.split('\n').length;
  return { line, column: at - before.lastIndexOf('\n') };
}

const mayEnd = (expected: Expected) =>
  expected === 'comma' || expected === 'value or end' || expected === 'name or end';

function skipSpace(text: string, at: number): number {
  return matchAt(SPACE, text, at) ?? at;
}

function matchAt(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

function endOfString(text: string, from: number): number | JsonError {
  for (let at = from + 1; at < text.length; ) {
    const letter = text[at] ?? '';
    if (letter === '"') return at + 1;
    if (letter < ' ') return { at, problem: 'a string goes no further than its line: use \\n' };
    if (letter !== '\\') {
      at++;
      continue;
    }
    const end = matchAt(ESCAPE, text, at);
    if (end === undefined) return { at, problem: 'no such escape: write \\\\ for a backslash' };
    at = end;
  }
  return { at: from, problem: 'this string has no end' };
}
