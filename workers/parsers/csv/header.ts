import type { DuckDBConnection } from '@duckdb/node-api';
import { query, quoteText } from '../table/duckdb.ts';
import { ALL_TYPES, narrowest, setOf, type TypeSet } from './column-types.ts';

/**
 * A letter, also after signs (@timestamp, (s), ∆T), the sign of a unit, or an ordinal such as 1st. What is measured (<0.01, <LOD, 5%,
 * 24:00) and \N, a missing value of databases, begin otherwise.
 */
const NAME = /^[^\p{L}\p{N}<>=~\\]{0,2}[\p{L}_]|^[([]?[%‰°#](?!\d)|^\d+(?:st|nd|rd|th)\b/iu;
/** What programs write for no value and for booleans, between signs or not. */
const NO_NAME =
  /^[^\p{L}\p{N}]{0,2}(?:nan(?:\(\w*\))?|nat|n\.?\/?a\.?|null|nil|none|missing|inf|infinity|true|false)[^\p{L}\p{N}]{0,2}$|^#[a-z0/]+[!?]$/iu;
const TEXT = setOf('VARCHAR');
const NUMBERS = setOf('BIGINT', 'DOUBLE');
const TIMES = setOf('DATE', 'TIME', 'TIMESTAMP', 'TIMESTAMPTZ');

/** Whether a text of the first record looks like the name of a column, and not like a value. */
export function looksLikeName(text: string): boolean {
  const trimmed = text.trim();
  return NAME.test(trimmed) && !NO_NAME.test(trimmed);
}

/** A value of the first record. */
export interface FirstValue {
  text: string;
  /** The types that hold it; all of them where it is missing. */
  types: TypeSet;
  /** The types that hold the values below it; all of them where there are none. */
  below: TypeSet;
}

/**
 * Whether the first record is a header, for no row may become names that is none: it has a name above a column without texts, or a
 * date above a column of numbers, as files with a column for each day have. Where all columns are texts, see areAllNames().
 */
export function looksLikeHeader(first: FirstValue[]): boolean {
  if (areAllTexts(first)) return areAllNames(first);
  return first.some(({ text, types, below }) => {
    const type = setOf(narrowest(below));
    const isDay = (types & TIMES) !== 0 && (types & NUMBERS) === 0;
    return (
      type !== TEXT &&
      ((types === TEXT && looksLikeName(text)) || (isDay && (type & NUMBERS) !== 0))
    );
  });
}

/** Whether no column has values of another type than text. */
export const areAllTexts = (first: FirstValue[]): boolean =>
  first.every(({ below }) => narrowest(below) === 'VARCHAR');

/** Whether all are names, each of one column. A column without values may have none. */
function areAllNames(first: FirstValue[]): boolean {
  const named = first.filter(({ types, below }) => types !== ALL_TYPES || below !== ALL_TYPES);
  return (
    named.length > 0 &&
    named.every(({ text, types }) => types === TEXT && looksLikeName(text)) &&
    new Set(named.map(({ text }) => text)).size === named.length
  );
}

/** Whether one of these texts is a value of its column c0, c1, … below it, too. */
export async function recurs(
  connection: DuckDBConnection,
  { relation, texts }: { relation: string; texts: string[] },
): Promise<boolean> {
  const same = texts.map((text, i) => `c${i} = ${quoteText(text)}`).join(' OR ');
  const found = await query(connection, `SELECT 1 FROM ${relation} WHERE ${same} LIMIT 1`);
  return found.length > 0;
}
