import { readJson } from '../projects/json-text.ts';
import type { Parser } from '../service/uploads.ts';

/** How a parameter of a parser is asked for. */
export type Field =
  | { name: string; kind: 'choice'; choices: string[] }
  | { name: string; kind: 'switch' | 'count' | 'text' | 'json' };

interface Schema {
  type?: string;
  enum?: string[];
}

/** Parameters that want a word more than their names. */
export const HINTS: Record<string, string> = {
  delimiter: 'One character; \\t is a tab, a space runs of spaces',
  header: 'Whether the first row names the columns',
  skip: 'Lines at the beginning that are left out',
  comment: 'Lines that begin with this character are left out',
  units: 'Whether the second row names units',
  nulls: 'What means a missing value, such as ["", "NA"]',
  tolerance: 'So many broken rows are left out and listed',
  text: 'Read every column as text',
  types: 'By column, such as {"zip": "text"}',
};

/** The parameters of a parser, by their JSON Schema. */
export function fieldsOf({ parameters }: Pick<Parser, 'parameters'>): Field[] {
  const { properties = {} } = parameters as { properties?: Record<string, Schema> };
  return Object.entries(properties).map(([name, schema]) => {
    if (schema.enum) return { name, kind: 'choice', choices: schema.enum };
    if (schema.type === 'boolean') return { name, kind: 'switch' };
    if (schema.type === 'integer' || schema.type === 'number') return { name, kind: 'count' };
    return { name, kind: schema.type === 'string' ? 'text' : 'json' };
  });
}

/** What was filled in, as the service takes it; what is left empty it finds by itself. A text says what is wrong. */
export function toParameters(
  fields: Field[],
  given: Record<string, string>,
): Record<string, unknown> | string {
  const parameters: Record<string, unknown> = {};
  for (const { name, kind } of fields) {
    const text = given[name] ?? '';
    if (text === '') continue;
    if (kind === 'json' && readJson(text).error !== undefined)
      return `${name} is no JSON: ${HINTS[name] ?? 'write it as a program would.'}`;
    parameters[name] = read(kind, text);
  }
  return parameters;
}

function read(kind: Field['kind'], text: string): unknown {
  if (kind === 'json') return JSON.parse(text);
  if (kind === 'switch') return text === 'yes';
  if (kind === 'count') return Number(text);
  return text === '\\t' ? '\t' : text;
}

/** The parser of files of this name, such as day.csv or day.csv.gz; those of an unknown one are kept as they are. */
export function parserFor(name: string, parsers: Parser[]): string {
  const ending = /\.([^./]+)(?:\.(?:gz|zst))?$/i.exec(name)?.[1]?.toLowerCase() ?? '';
  return parsers.find(({ extensions }) => extensions.includes(ending))?.name ?? 'blob';
}
